"""One model in memory for all editors: supervisor process, model worker child, and clients.

    client (editor, CLI) --socket--> server + supervisor --pipes--> worker (the only native code)

Rooms: wire (frames and messages), address (where a daemon lives), scheduler (which request is
next), process (one worker child), supervisor (routing, deadlines, respawn), server (sockets),
worker (the child's side), spawn and client (the way in), control (start, stop, status).
"""
