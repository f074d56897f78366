"""Names of files as a folder has them, atomic replacement of files, and detection of it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TypeAlias

from codespec.system.folders import private_opener

FileState: TypeAlias = tuple[int, int, int] | None


def relative(path: str, root: str) -> str:
    """`os.path.relpath`. Of a path on another drive than the root (Windows), one that leads out of
    the root."""
    try:
        return os.path.relpath(path, root)
    except ValueError:
        return os.path.join(os.pardir, os.path.splitdrive(path)[1].lstrip("/\\"))


def state_of(path: str | os.PathLike[str]) -> FileState:
    """Fingerprint of a file, (modification time in ns, inode, size): it differs once the file was
    replaced or written to. None where there is no file. Takes a few microseconds."""
    try:
        s = os.stat(path)
    except (OSError, ValueError):  # the latter of a name that none can have
        return None
    return s.st_mtime_ns, s.st_ino, s.st_size


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file's content atomically: readers find the old content or `data`, also when this
    process, or another writer, crashes meanwhile. A missing folder is created.

    mode: permissions as for `os.chmod`; by default for the owner alone.

    Raises: OSError, and then leaves no temporary file.
    """
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        os.close(private_opener(temporary, os.O_WRONLY | os.O_CREAT))
        temporary.write_bytes(data)
        if mode != 0o600:
            temporary.chmod(mode)
        os.replace(temporary, path)
    except OSError as e:
        e.filename = e.filename or str(path)  # a full disk names none
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
