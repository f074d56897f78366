"""What a figure was measured on: without it, a figure says nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from codespec import __version__


def stamp() -> dict[str, str | int | float]:
    """cpu, n_cores, memory_gib, os, python, codespec. Names no host and no user."""
    return {
        "cpu": _proc("cpuinfo", "model name") or platform.processor() or platform.machine(),
        "n_cores": os.cpu_count() or 1,
        "memory_gib": round(_memory_bytes() / 2**30, 1),
        "os": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "codespec": __version__,
    }


def peak_bytes() -> int:
    """Most memory this process ever held; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else peak * 1024


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _proc(file: str, key: str) -> str:
    try:
        lines = Path("/proc", file).read_text().splitlines()
    except OSError:
        return ""
    return next((s.partition(":")[2].strip() for s in lines if s.startswith(key)), "")
