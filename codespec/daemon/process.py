"""One worker child: its pipes, its last words, its exit status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
from collections.abc import Sequence

from codespec.daemon import wire
from codespec.errors import DaemonError
from codespec.system.processes import away
from codespec.system.pulse import Pulse

log = logging.getLogger(__name__)

_MAX_LINE_CHARS = 400
_CRASH = "Fatal Python error"
"""First words of faulthandler's report, which tells at length where it happened, and not why."""


class WorkerProcess:
    """A worker child. Frames go over stdin and stdout; stderr is logged."""

    def __init__(self, process: asyncio.subprocess.Process, pulse: Pulse) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.pulse = pulse
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._stderr = process.stderr
        self.last_words = ""
        """The last line that it said itself, for a diagnosis."""
        self._has_crashed = False
        self._stderr_pump = asyncio.create_task(self._read_stderr())

    @classmethod
    async def spawn(cls, command: Sequence[str]) -> WorkerProcess:
        """Start a worker. Raises: DaemonError if the program cannot be started."""
        pipe = subprocess.PIPE
        try:
            pulse = Pulse()
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=pipe,
                    stdout=pipe,
                    stderr=pipe,
                    cwd=away(),
                    pass_fds=pulse.inherited,
                )
            finally:
                pulse.started()
        except OSError as e:
            raise DaemonError(
                f"cannot start the model worker: {e}", "Install codespec again."
            ) from None
        return cls(process, pulse)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: wire.Message) -> None:
        """Send a message. Never waits; a worker that died is noticed by `read`."""
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._stdin.write(wire.frame(message))

    async def read(self) -> wire.FromWorker | None:
        """The next message, None if the worker is gone. Raises: WireError for garbage."""
        try:
            return await wire.read(self._stdout, wire.from_worker_decoder)
        except ConnectionError:
            return None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def close(self, patience_s: float) -> int:
        """Ask it to end by closing its stdin, kill it after `patience_s` seconds. Returns: the exit
        status, negative for the number of a signal."""
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), patience_s)
        except asyncio.TimeoutError:
            self.kill()
        status = await self._process.wait()
        # A grandchild could hold the pipe open for ever.
        await asyncio.wait({self._stderr_pump}, timeout=patience_s)
        self._stderr_pump.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._stderr_pump
        return status

    async def _read_stderr(self) -> None:
        while True:
            try:
                line = await self._stderr.readline()
            except ValueError:  # longer than the reader's limit; the rest comes as lines of its own
                continue
            except ConnectionError:
                return
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip()[:_MAX_LINE_CHARS]
            self._has_crashed = self._has_crashed or text.startswith(_CRASH)
            if text and not self._has_crashed:
                self.last_words = text
            log.info("worker %d: %s", self.pid, text)
