"""The machine that a figure was measured on: without it, a figure says nothing."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from codespec import __version__
from codespec.backends.registry import backend_of
from codespec.system import programs


@functools.cache
def stamp() -> dict[str, str | int | float]:
    """cpu, n_cores, memory_gib, gpu and driver where there is one, what llama.cpp was built for
    (backend), versions of os, python, numpy, llama_cpp and codespec, and codespec's commit. Names
    no host and no user."""
    gpu, _, driver = _output(
        "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"
    ).partition(", ")
    found: dict[str, str | int | float] = {
        "cpu": _cpu(),
        "n_cores": os.cpu_count() or 1,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpu": gpu,
        "driver": driver.partition("\n")[0],
        "backend": backend_of("").device(),
        "os": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "llama_cpp": backend_of("").build(),
        "codespec": __version__,
        "commit": _commit(),
    }
    return {name: value for name, value in found.items() if value}


def _cpu() -> str:
    return (
        _proc("cpuinfo", "model name")
        or _output("sysctl", "-n", "machdep.cpu.brand_string")
        or platform.machine()
    )


def _version(package: str) -> str:
    """ "" where it is not installed as a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    """Commit of the checkout that this code lies in, or that `bench/gpu/build.py` copied; "" where
    it is installed otherwise."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        copied = Path(__file__).with_name("commit")
        return copied.read_text() if copied.exists() else ""
    return _output("git", "-C", str(root), "describe", "--always", "--dirty")


def _output(*command: str) -> str:
    """Output of a command; "" where there is no such command or it fails."""
    try:
        found = programs.command(*command)
        done = subprocess.run(found, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if not done.returncode else ""


def peak_bytes() -> int:
    """Most memory this process ever held; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _proc(file: str, key: str) -> str:
    try:
        lines = Path("/proc", file).read_text().splitlines()
    except OSError:
        return ""
    return next((s.partition(":")[2].strip() for s in lines if s.startswith(key)), "")
