"""A daemon at the address of the current settings, with a scripted worker. Run as a script."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from codespec.config import load_settings
from codespec.daemon.address import address_of
from codespec.daemon.keeper import RestartPolicy
from codespec.daemon.listener import DaemonServer
from codespec.daemon.lock import FileLock

SCRIPT = str(Path(__file__))
POLICY = RestartPolicy(grace_s=1.0, look_s=0.1)


async def run() -> None:
    settings = load_settings()
    worker = str(Path(__file__).with_name("scripted_worker.py"))
    command = [sys.executable, worker, *sys.argv[1:]]
    await DaemonServer(settings, address_of(settings), command=command, policy=POLICY).run()


if __name__ == "__main__":
    lock = FileLock(address_of(load_settings()).lock)
    assert lock.acquire()
    lock.sign()
    asyncio.run(run())
