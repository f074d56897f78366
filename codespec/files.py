"""Files that are replaced as a whole."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Whoever reads the file finds what it held before or `data`, also when this process, or
    another that writes it, ends on the way. Its folder is made where it is not there.

    Raises: OSError, and then leaves nothing lying about.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as e:
        e.filename = e.filename or str(path)  # a full disk names none
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
