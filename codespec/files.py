"""Files that are replaced as a whole, and how to see that one was."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TypeAlias

from codespec.folders import private_opener

FileState: TypeAlias = tuple[int, int, int] | None


def state_of(path: str | os.PathLike[str]) -> FileState:
    """Another value once the file is another, or was written to; None where there is none. Takes a
    few microseconds."""
    try:
        s = os.stat(path)
    except (OSError, ValueError):  # the latter of a name that none can have
        return None
    return s.st_mtime_ns, s.st_ino, s.st_size


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Whoever reads the file finds what it held before or `data`, also when this process, or
    another that writes it, ends on the way. Its folder is made where it is not there. mode: who may
    do what with it, as for `os.chmod`; its owner alone.

    Raises: OSError, and then leaves nothing lying about.
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
