"""What this machine offers a model."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass

import psutil

_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Hardware:
    """memory_bytes: of the machine; gpu_bytes: of its largest NVIDIA GPU, 0 for none."""

    n_cores: int
    memory_bytes: int
    gpu: str
    gpu_bytes: int
    is_apple_silicon: bool


def found() -> Hardware:
    """Cost: a process where NVIDIA's tool is installed."""
    gpu, gpu_bytes = _nvidia()
    return Hardware(
        n_cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        gpu=gpu,
        gpu_bytes=gpu_bytes,
        is_apple_silicon=platform.system() == "Darwin" and platform.machine() == "arm64",
    )


def _nvidia() -> tuple[str, int]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "", 0
    command = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "", 0
    return largest(done.stdout)


def largest(listing: str) -> tuple[str, int]:
    """(name, bytes) of the largest GPU in lines of "name, MiB"; ("", 0) where there is none."""
    best = "", 0
    for line in listing.splitlines():
        name, _, size = line.rpartition(",")
        if size.strip().isdigit() and (n_bytes := int(size) << 20) > best[1]:
            best = name.strip(), n_bytes
    return best
