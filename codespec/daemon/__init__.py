"""One model in memory for all editors: supervisor process, model worker child, and clients.

    client (editor, CLI) --socket--> listener + supervisor --pipes--> worker (the only native code)

Both ends: wire (frames and messages), payload (their content), address (where a daemon lives),
lock, logs.

The daemon's process: listener (sockets), supervisor (routing, deadlines), scheduler (which request
is next), keeper (loads and respawns the worker), process (one worker child), health and
worker_memory (limits of a worker).

The worker's process: worker.

Clients: client and async_client, current_client (follows changes of the settings), spawn (starts
the daemon), control (start, stop, status). HTTP clients come through `codespec.http`, a process of
its own.
"""
