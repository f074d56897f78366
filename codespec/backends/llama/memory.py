"""Memory check before a model is loaded: an error message instead of a process that the system
kills."""

from __future__ import annotations

import sys
from pathlib import Path

from codespec.errors import ModelError
from codespec.models.hardware import free_memory

# Memory of a loaded model over the size of its file: weights are most of it, not all.
_OVERHEAD = 1.1


def check_fits(path: Path, n_bytes: int) -> None:
    """Check that a model fits into free memory. n_bytes: size of all its files. Raises:
    ModelError."""
    needed, free = int(n_bytes * _OVERHEAD), free_memory()
    if needed > free:
        raise ModelError(
            f"{path}: the model is too large for the free memory: it needs {_gb(needed)}, "
            f"{_gb(free)} are free",
            "Close other programs, or choose a smaller model or quantisation.",
        )


def out_of_memory(path: Path, what: str, step: str = "choose a smaller model") -> ModelError:
    """The error of an allocation that failed though memory seemed free.

    what: its purpose, such as "to load it". step: another next step for the user.
    """
    return ModelError(
        f"{path}: there is too little memory {what}{_limits()}",
        f"Close other programs, raise the limit if there is one (ulimit -v), or {step}.",
    )


def _limits() -> str:
    """Memory limits of this process, as a text in parentheses; "" for none."""
    if sys.platform == "win32":
        return ""
    import resource

    kinds = (("address space", resource.RLIMIT_AS), ("data", resource.RLIMIT_DATA))
    found = [(name, resource.getrlimit(kind)[0]) for name, kind in kinds]
    said = [f"{_gb(n)} of {name}" for name, n in found if n != resource.RLIM_INFINITY]
    return f" (this process may have {' and '.join(said)})" if said else ""


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
