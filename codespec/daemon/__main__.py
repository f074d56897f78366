"""The daemon's process: `python -m codespec.daemon`. Clients start it, see `spawn`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

_LOCK_S = 10.0  # a predecessor may still be stopping


def main(arguments: Sequence[str]) -> int:
    """Run the daemon. Returns: an exit status.

    arguments: transport ("unix" or "tcp"), settings as JSON, and the folder of its sockets, by
    which it can be found among processes; before them, "--detach" runs it in the background.
    """
    arguments = list(arguments)
    if arguments[:1] == ["--detach"]:
        # Before the imports: a process of one thread that has opened nothing forks safely.
        # The parent ends at once, so no client has a daemon as its child.
        if sys.platform != "win32" and os.fork() != 0:
            os._exit(0)
        del arguments[0]
    if len(arguments) != 3 or arguments[0] not in ("unix", "tcp"):
        usage = "usage: python -m codespec.daemon [--detach] unix|tcp SETTINGS FOLDER"
        print(usage, file=sys.stderr)
        return 2

    import asyncio
    import logging

    import msgspec

    from codespec import __version__
    from codespec.config import Settings
    from codespec.daemon.address import address_of
    from codespec.daemon.listener import DaemonServer
    from codespec.daemon.lock import FileLock
    from codespec.daemon.logs import set_up
    from codespec.errors import CodespecError

    log = logging.getLogger("codespec.daemon")
    try:
        settings = msgspec.json.decode(arguments[1], type=Settings)
        address = address_of(settings, "tcp" if arguments[0] == "tcp" else "unix")
        set_up(address.log, settings.daemon.log_level)
        lock = FileLock(address.lock)
        give_up_at = time.monotonic() + _LOCK_S
        while not lock.acquire():
            if time.monotonic() > give_up_at:
                log.info("another daemon lives here; nothing to do")
                return 0
            time.sleep(0.02)
        lock.sign()
        log.info("codespec daemon %s starts", __version__)

        async def run() -> None:
            await DaemonServer(settings, address).run()

        asyncio.run(run())
        log.info("codespec daemon ends")
        return 0  # the lock goes with the process
    except (CodespecError, msgspec.DecodeError) as e:
        print(f"codespec daemon: {e}", file=sys.stderr)
        return 1
    except Exception:
        log.exception("the daemon failed")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
