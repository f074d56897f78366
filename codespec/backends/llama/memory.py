"""How large a model is, and how much memory is free, to say no in words before the system does with
a kill."""

from __future__ import annotations

import sys
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


def ran_out(path: Path, what: str, step: str = "choose a smaller model") -> ModelError:
    """The error of who got no memory for it while there seemed to be enough. what: "to load
    it". step: what else helps."""
    return ModelError(
        f"{path}: there is too little memory {what}{_limits()}",
        f"Close other programs, raise the limit if there is one (ulimit -v), or {step}.",
    )


def _limits() -> str:
    """Limits that this process has below the machine's, as they are said behind something."""
    if sys.platform == "win32":
        return ""
    import resource

    kinds = (("address space", resource.RLIMIT_AS), ("data", resource.RLIMIT_DATA))
    found = [(name, resource.getrlimit(kind)[0]) for name, kind in kinds]
    said = [f"{_gb(n)} of {name}" for name, n in found if n != resource.RLIM_INFINITY]
    return f" (this process may have {' and '.join(said)})" if said else ""


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
