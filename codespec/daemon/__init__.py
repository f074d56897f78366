"""One model in memory for all editors: supervisor process, model worker child, and clients.

    client (editor, CLI) --socket--> server + supervisor --pipes--> worker (the only native code)

Rooms: wire (frames and messages), payload (what they carry), address (where a daemon lives), lock,
logs, scheduler (which request is next), process (one worker child), keeper (its lives), supervisor
(routing, deadlines), server (sockets), worker (the child's side), spawn, client and async_client
(the way in), control (start, stop, status); http, access, dialects and current (the front for
HTTP).
"""
