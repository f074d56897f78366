"""Exclusive lock on a file, released when the process that holds it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path

from codespec.errors import DaemonError
from codespec.system.folders import private_opener

if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _lock(fd: int, *, shared: bool = False) -> None:
        # A byte far behind the content: Windows lets nobody read what is locked.
        os.lseek(fd, 1 << 20, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(fd: int, *, shared: bool = False) -> None:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


class FileLock:
    """A lock that children do not inherit; not re-entrant. The file stays behind: removing a lock
    file races with a process that opens it at that moment."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self, *, shared: bool = False) -> bool:
        """Take the lock if it is free; never waits. shared: others may share it. Returns: True if
        it is taken.

        Raises: DaemonError if the file cannot be opened.
        """
        try:
            fd = private_opener(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as e:
            raise cannot_open(f"the lock file {self._path}", e) from None
        try:
            _lock(fd, shared=shared)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def sign(self) -> None:
        """Write the process id into the file, for `holder`. On a full disk `holder` finds none, and
        the lock holds as well."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            with contextlib.suppress(OSError):
                os.write(self._fd, str(os.getpid()).encode())

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def is_free(path: Path) -> bool:
    """True if nobody holds the lock. Raises: DaemonError, as `FileLock.acquire`."""
    lock = FileLock(path)
    free = lock.acquire(shared=True)  # whoever looks at the same moment is no holder
    lock.release()
    return free


def cannot_open(what: str, error: OSError) -> DaemonError:
    """The error for a file of the daemon that `private_opener` failed to open."""
    is_other = error.errno == errno.EINVAL
    return DaemonError(
        f"cannot open {what}: {error.strerror}",
        "Remove it." if is_other else "Set CODESPEC_RUNTIME_DIR to a folder you can write to.",
    )


def unresponsive(path: Path) -> DaemonError:
    """The error for a daemon that holds the lock and does not answer."""
    pid = holder(path)
    who = "the daemon" if pid is None else f"the daemon (process {pid})"
    hint = "Run: codespec daemon restart"
    if pid is not None and is_stopped(path):
        return DaemonError(
            f"{who} is stopped and does not answer", f"Let it go on: kill -CONT {pid}. Or {hint}"
        )
    return DaemonError(f"{who} does not answer", hint)


def is_stopped(path: Path) -> bool:
    """True if the process that holds the lock was stopped by a signal or a debugger, rather than
    short of time. Takes some milliseconds."""
    import psutil  # for who waits already

    pid = holder(path)
    with contextlib.suppress(psutil.Error):
        stopped = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
        return pid is not None and psutil.Process(pid).status() in stopped
    return False


def holder(path: Path) -> int | None:
    """Id of the process that holds the lock and signed it; None if it is free."""
    if is_free(path):
        return None
    try:
        return int(path.read_bytes())
    except (OSError, ValueError):
        return None
