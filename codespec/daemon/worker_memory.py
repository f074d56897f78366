"""Memory limit of workers: one that takes more than its models need must end.

The memory that it takes when its models are loaded is theirs: weights that are not mapped, caches,
compute buffers. From then on it may add the caches that it puts aside, as configured, and a
gigabyte beside, for documents, their trees and everything else. Memory of a GPU is not looked at.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass

from codespec.daemon.wire import Ready

BESIDE_BYTES = 1 << 30


def own_bytes(pid: int) -> int:
    """Bytes of memory that a process has for itself alone; 0 if the system does not tell. Mapped
    files (models, segments of an index) count on macOS alone, where telling them apart costs too
    much to be done several times a second."""
    import psutil  # for who asks; a daemon starts faster without

    with contextlib.suppress(psutil.Error):
        info = psutil.Process(pid).memory_info()
        if sys.platform == "linux":
            return info.rss - info.shared
        return info.private if sys.platform == "win32" else info.rss
    return 0


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Bytes that a worker may take. loaded: taken by its models. saved: for states that it puts
    aside, and for a model that it loads when it is needed. beside: for everything else."""

    loaded: int
    saved: int
    beside: int

    @classmethod
    def of(
        cls, pid: int, ready: Ready, cache_bytes: int, beside: int = BESIDE_BYTES
    ) -> MemoryBudget:
        """Budget of a worker whose models are loaded. cache_bytes: of all indexes, parts of which
        it may map."""
        mapped = ready.file_bytes + cache_bytes if sys.platform == "darwin" else 0
        return cls(own_bytes(pid) + mapped, ready.saved_bytes, beside)

    def why_over(self, pid: int) -> str:
        """The reason why the worker must end, "" if it need not."""
        n_bytes, most = own_bytes(pid), self.loaded + self.saved + self.beside
        if n_bytes <= most:
            return ""
        return (
            f"the model worker took too much memory, {_mb(n_bytes)}: its models take "
            f"{_mb(self.loaded)}, caches put aside and further models at most "
            f"{_mb(self.saved)}, and {_mb(self.beside)} are for everything else"
        )


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB"
