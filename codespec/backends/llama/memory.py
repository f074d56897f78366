"""How much memory is free, to say no in words before the system does with a kill."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from codespec.errors import ModelError

# Of the file's size: weights are most of what a loaded model takes, not all.
_OVERHEAD = 1.1


def available_bytes() -> int:
    """Memory that programs can still take, caches given up included; where only the total is
    known, three quarters of it; 0 where nothing is."""
    if sys.platform == "linux":
        try:
            for line in Path("/proc/meminfo").read_text("ascii", "replace").splitlines():
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        except (OSError, ValueError):
            pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4
    except (AttributeError, OSError, ValueError):
        return 0


def check_fits(path: Path, n_bytes: int) -> None:
    """`n_bytes`: of the model file. Raises: ModelError when that does not fit into free memory."""
    needed, free = int(n_bytes * _OVERHEAD), available_bytes()
    if free and needed > free:
        raise ModelError(
            f"{path}: the model is too large for the free memory: it needs {_gb(needed)}, "
            f"{_gb(free)} are free",
            "Close other programs, or choose a smaller model or quantisation.",
        )


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
