"""Start of a daemon in the background: one client starts it, the others wait for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import msgspec

from codespec.config import Settings
from codespec.daemon.address import Address, resolved
from codespec.daemon.lock import FileLock, cannot_open, is_free, unresponsive
from codespec.daemon.logs import last_lines
from codespec.errors import DaemonError
from codespec.system.folders import private_opener
from codespec.system.processes import module_command

_POLL_S = 0.01
_TIMEOUT_S = 30.0
_LAUNCHER_S = 20.0
# Seconds after its start when a daemon that holds no lock counts as dead.
_TAKEOFF_S = 5.0


class Starter:
    """Brings a daemon up, one non-blocking step at a time, for blocking and async callers:

    with Starter(address, settings) as starter:
        while (connection := try_to_connect()) is None:
            sleep(starter.step())
    """

    def __init__(self, address: Address, settings: Settings) -> None:
        self._address = address
        self._settings = resolved(settings)
        self._lock = FileLock(address.start_lock)
        self._begun_s = time.monotonic()
        self._spawned_s: float | None = None

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def step(self) -> float:
        """Take one step, after a failed attempt to connect. May spawn a process (some 50 ms).

        Returns: seconds to wait before the next attempt.
        Raises: DaemonError if waiting longer is of no use.
        """
        now = time.monotonic()
        if self._spawned_s is None:
            if self._lock.acquire():
                self._spawn()
                self._spawned_s = time.monotonic()
        elif now - self._spawned_s > _TAKEOFF_S and is_free(self._address.lock):
            raise self._error("the daemon ended while starting")
        if now - self._begun_s > _TIMEOUT_S:
            if not is_free(self._address.lock):
                raise unresponsive(self._address.lock)
            raise self._error(f"the daemon did not start within {_TIMEOUT_S:g} s")
        return _POLL_S

    def _spawn(self) -> None:
        address = self._address
        settings = msgspec.json.encode(self._settings).decode()
        folder = address.lock.parent  # not the caller's: that may go while the daemon runs
        command = module_command(
            "codespec.daemon", "--detach", address.transport, settings, str(folder)
        )
        # Its address is decided: a login session that comes or goes meanwhile changes nothing.
        env = {**os.environ, "CODESPEC_RUNTIME_DIR": str(folder)}
        try:
            output = open(address.log, "ab", opener=private_opener)  # noqa: SIM115 - closed below
        except OSError as e:
            raise cannot_open(f"the log {address.log}", e) from None
        try:
            with output as log:
                if sys.platform == "win32":  # pragma: no cover
                    flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
                    subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                        cwd=folder, env=env, creationflags=flags,
                    )  # fmt: skip
                else:
                    subprocess.run(
                        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                        cwd=folder, env=env, start_new_session=True, timeout=_LAUNCHER_S,
                        check=False,
                    )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as e:
            raise DaemonError(f"cannot start the daemon: {e}", "Install codespec again.") from None

    def _error(self, message: str) -> DaemonError:
        lines = last_lines(self._address.log, 5)
        quoted = "".join(f"\n    {line}" for line in lines) or " (empty)"
        return DaemonError(message, f"End of its log, {self._address.log}:{quoted}")
