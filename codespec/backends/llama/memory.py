"""How large a model is, and how much memory is free, to say no in words before the system does with
a kill."""

from __future__ import annotations

from pathlib import Path

from codespec.errors import ModelError
from codespec.models.hardware import free_memory

# Of the file's size: weights are most of what a loaded model takes, not all.
_OVERHEAD = 1.1


def check_fits(path: Path, n_bytes: int) -> None:
    """`n_bytes`: of all files. Raises: ModelError when that does not fit into free memory."""
    needed, free = int(n_bytes * _OVERHEAD), free_memory()
    if needed > free:
        raise ModelError(
            f"{path}: the model is too large for the free memory: it needs {_gb(needed)}, "
            f"{_gb(free)} are free",
            "Close other programs, or choose a smaller model or quantisation.",
        )


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
