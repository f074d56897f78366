"""The child processes that keep the indexes of the workspace folders fresh.

Each has a low priority, and may die: parsers and tokenizers are native code that reads whatever the
repository holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE

import msgspec

from codespec.config import IndexSettings
from codespec.limits import FOLDERS
from codespec.system.processes import NICENESS, away, module_command

log = logging.getLogger(__name__)

# A file that ends a child costs it one life, and one more where the parser is not at fault.
MAX_CRASHES = 50
# A child that ended with an error of its own will do so again.
MAX_FAILURES = 4
_PAUSE_S = 1.0
_PATIENCE_S = 1.0
_MAX_UNREAD_BYTES = 1 << 16


def watch_command(root: str, target: str = "") -> list[str]:
    """The command of a child. `target`: the model whose tokenizer to index with; "" for the one of
    the settings files, which the child reads itself."""
    model = ["--model", target] if target else []
    watch = ["index", root, "--watch", "--in-process", "--quiet", "--progress"]
    return module_command("codespec", *watch, *model)


def watch_environment(settings: IndexSettings) -> dict[str, str]:
    """The environment of a child: our own, with the editor's settings."""
    values = msgspec.structs.asdict(settings)
    return os.environ | {f"CODESPEC_INDEX_{k.upper()}": json.dumps(values[k]) for k in values}


class Indexer:
    """One child for each folder, started again when it dies, on one event loop."""

    def __init__(
        self,
        command: Callable[[str], list[str]] = watch_command,
        env: Mapping[str, str] | None = None,
        pause_s: float = _PAUSE_S,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        """on_progress: told (folder, files done, files) while a build takes long, and at its
        end; (folder, 0, 0) when it ended otherwise."""
        self._command = command
        self._env = env
        self._pause_s = pause_s
        self._on_progress = on_progress
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._children: dict[str, Process] = {}
        self._lives: dict[str, list[int]] = {}

    def watch(self, root: str) -> None:
        """Index the folder `root` (absolute), now and after every change, unless as many folders as
        are allowed are watched already."""
        if _is_project(root) and root not in self._tasks and len(self._tasks) < FOLDERS:
            self._tasks[root] = asyncio.ensure_future(self._keep(root))

    def changed(self, root: str, path: str) -> None:
        """A file of a watched folder was saved: tell its child, as not every file system reports
        changes. A child that was given up gets another life."""
        child = self._children.get(root)
        if root not in self._tasks:
            self.watch(root)
        elif child is not None and child.stdin is not None and "\n" not in path:
            with contextlib.suppress(OSError, RuntimeError):
                if child.stdin.transport.get_write_buffer_size() < _MAX_UNREAD_BYTES:
                    child.stdin.write(f"{path}\n".encode("utf-8", "surrogateescape"))

    async def unwatch(self, root: str) -> None:
        """The folder was closed."""
        task = self._tasks.get(root)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        await asyncio.gather(*map(self.unwatch, list(self._tasks)))

    async def _keep(self, root: str) -> None:
        lives = self._lives.setdefault(root, [MAX_CRASHES, MAX_FAILURES])
        try:
            while (status := await self._run(root)) != 0:
                log.warning("indexing ended with status %d", status)
                failed = status > 0
                lives[failed] = max(0, lives[failed] - 1)
                if not lives[failed]:
                    return
                tries = MAX_FAILURES - lives[True] if failed else 0
                await asyncio.sleep(self._pause_s * 2**tries)
        finally:
            del self._tasks[root]

    async def _run(self, root: str) -> int:
        """Run a child to its end. Returns: its exit status, negative for a signal."""
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command(root), stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
                env=self._env, cwd=away(), start_new_session=True,
            )  # fmt: skip
        except OSError as e:
            log.warning("cannot index: %s", e.strerror)
            return 1
        self._children[root] = child
        try:
            if sys.platform != "win32":
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
            await self._listen(root, child)
            return await child.wait()
        finally:
            self._tell(root, 0, 0)
            del self._children[root]
            if child.returncode is None:
                await _end(child)

    async def _listen(self, root: str, child: Process) -> None:
        """Read the child's reports until it closes its standard output."""
        assert child.stdout is not None
        while True:
            try:
                line = await child.stdout.readline()
            except ValueError:  # longer than any report
                continue
            if not line:
                return
            with contextlib.suppress(ValueError, TypeError, KeyError):
                told = json.loads(line)
                if "note" in told:
                    log.warning("indexing: %s", told["note"])
                    continue
                self._tell(root, int(told["n_files_done"]), int(told["n_files"]))

    def _tell(self, root: str, n_done: int, n_files: int) -> None:
        if self._on_progress is not None:
            self._on_progress(root, n_done, n_files)


async def _end(child: Process) -> None:
    """Close the child's standard input, at which it ends by itself; otherwise end its process
    group."""
    for number in (None, "SIGTERM", "SIGKILL"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if number is None:
                if child.stdin is not None:
                    child.stdin.close()
            elif sys.platform == "win32":
                child.terminate()
            else:
                os.killpg(child.pid, signal.Signals[number])
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(child.wait(), _PATIENCE_S)
            return


def _is_project(root: str) -> bool:
    """True for a folder that is neither the whole disk nor the whole home folder: those are opened
    by accident, and take hours to index."""
    path = Path(root)
    return path.is_dir() and path != Path(path.anchor) and path != Path.home()
