"""A daemon at the address of the current settings, with a scripted worker. Run as a script."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from codespec.config import load_settings
from codespec.daemon.address import address_of
from codespec.daemon.lock import FileLock
from codespec.daemon.server import Server

SCRIPT = str(Path(__file__))


async def run() -> None:
    settings = load_settings()
    worker = str(Path(__file__).with_name("scripted_worker.py"))
    await Server(
        settings, address_of(settings), command=[sys.executable, worker, *sys.argv[1:]]
    ).run()


if __name__ == "__main__":
    lock = FileLock(address_of(load_settings()).lock)
    assert lock.acquire()
    lock.sign()
    asyncio.run(run())
