"""This machine's memory, cores and GPU."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from codespec.system import programs

_TIMEOUT_S = 5.0
_ASK_NVIDIA = "--query-gpu=memory.total", "--format=csv,noheader,nounits"
_CGROUP = Path("/sys/fs/cgroup")
"""Files with a container's own limits (cgroup version 2). Outside of a container there are none.

Source: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory
"""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Capacities of the machine. memory_bytes: of the machine, or its container; gpu_bytes: of its
    largest NVIDIA GPU, 0 for none; uses_gpu: True if models here can run on a GPU at all."""

    n_cores: int
    memory_bytes: int
    gpu_bytes: int
    is_apple_silicon: bool
    uses_gpu: bool

    @property
    def has_idle_gpu(self) -> bool:
        return not self.uses_gpu and (self.gpu_bytes > 0 or self.is_apple_silicon)


def detect(*, uses_gpu: bool) -> Hardware:
    """This machine's capacities. uses_gpu: what llama.cpp says of itself. Cost: a process if
    NVIDIA's tool is installed."""
    return Hardware(
        n_cores=os.cpu_count() or 1,
        memory_bytes=min(psutil.virtual_memory().total, _limit_bytes()),
        gpu_bytes=_nvidia_bytes(),
        is_apple_silicon=platform.system() == "Darwin" and platform.machine() == "arm64",
        uses_gpu=uses_gpu,
    )


def free_memory() -> int:
    """Bytes that this process could allocate before the system ends a process for want of memory,
    in the machine and in the container that it runs in."""
    free = psutil.virtual_memory().available
    used = _numbers_in("memory.current").get("")
    if used is None:
        return free
    kinds = _numbers_in("memory.stat")
    files = kinds.get("inactive_file", 0) + kinds.get("active_file", 0)  # given back when needed
    return min(free, max(0, _limit_bytes() - used + files))


def _limit_bytes() -> int:
    return _numbers_in("memory.max").get("", sys.maxsize)


def _numbers_in(name: str) -> dict[str, int]:
    """Numbers by name from a file of lines "NAME NUMBER", or "" -> number from one with a number
    alone; "max" is left out."""
    try:
        lines = (_CGROUP / name).read_text().splitlines()
    except OSError:
        return {}
    found = (line.rpartition(" ") for line in lines)
    return {name: int(number) for name, _, number in found if number.isdigit()}


def _nvidia_bytes() -> int:
    try:
        command = programs.command("nvidia-smi", *_ASK_NVIDIA)
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return largest_gpu_bytes(done.stdout)


def largest_gpu_bytes(listing: str) -> int:
    """Bytes of the largest GPU in lines of MiB; 0 without any."""
    sizes = (line.strip() for line in listing.splitlines())
    return max((int(size) << 20 for size in sizes if size.isdigit()), default=0)
