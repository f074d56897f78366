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
    """memory_bytes: of the machine; gpu_bytes: of its largest NVIDIA GPU, 0 for none; uses_gpu:
    whether models here can run on a GPU at all.
    """

    n_cores: int
    memory_bytes: int
    gpu_bytes: int
    is_apple_silicon: bool
    uses_gpu: bool

    @property
    def has_idle_gpu(self) -> bool:
        return not self.uses_gpu and (self.gpu_bytes > 0 or self.is_apple_silicon)


def found(*, uses_gpu: bool) -> Hardware:
    """uses_gpu: what llama.cpp says of itself. Cost: a process where NVIDIA's tool is installed."""
    return Hardware(
        n_cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        gpu_bytes=_nvidia_bytes(),
        is_apple_silicon=platform.system() == "Darwin" and platform.machine() == "arm64",
        uses_gpu=uses_gpu,
    )


def _nvidia_bytes() -> int:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    command = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return largest(done.stdout)


def largest(listing: str) -> int:
    """Bytes of the largest GPU in lines of MiB; 0 where there is none."""
    sizes = (line.strip() for line in listing.splitlines())
    return max((int(size) << 20 for size in sizes if size.isdigit()), default=0)
