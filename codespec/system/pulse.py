"""Heartbeat of a worker process: a step counter in memory shared with its parent.

A worker that computes for long and one that hangs look the same from outside. So long work counts
its steps here: passes and their parts, parts of a parse, parts of a model that is loaded. Native
code increments the same counter, as it can while other threads hold the interpreter.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import secrets
import sys
import tempfile
from typing import Any

_N_BYTES = mmap.PAGESIZE


class _Pulse(ctypes.Structure):
    """n_steps: steps so far, modulo 2**64. n_threads: threads that compute the present one."""

    _fields_ = (("n_steps", ctypes.c_uint64), ("n_threads", ctypes.c_uint64))
    n_steps: int
    n_threads: int


_own = _Pulse(0, 1)


def step() -> None:
    """Count a step. To be called at least once a second of processor time. Takes 0.1 us."""
    _own.n_steps += 1


def computing(n_threads: int) -> None:
    """Set the number of threads at work, each of which may take a second for a step."""
    _own.n_threads = n_threads


def steps_address() -> int:
    """Address of the 64-bit step counter for native code, valid for the rest of the process."""
    return ctypes.addressof(_own)


def share(name: str) -> None:
    """Share the step counter with the parent from now on. To be called before `steps_address`.

    name: `Pulse.name`. Raises: OSError, ValueError.
    """
    global _own
    if sys.platform == "win32":  # pragma: no cover
        memory = _named_memory(name)
    else:
        memory = mmap.mmap(int(name), _N_BYTES)
        os.close(int(name))
    shared = _Pulse.from_buffer(memory)
    shared.n_steps, shared.n_threads = _own.n_steps, _own.n_threads
    _own = shared


class Pulse:
    """The parent's view of a child's step counter. Raises: OSError without shared memory."""

    def __init__(self) -> None:
        self.inherited: tuple[int, ...] = ()
        """File descriptors that the child must inherit."""
        if sys.platform == "win32":  # pragma: no cover
            self.name = f"codespec-{secrets.token_hex(16)}"
            self._memory = _named_memory(self.name)
        else:
            fd = _nameless_file()
            self.name, self.inherited = str(fd), (fd,)
            self._memory = mmap.mmap(fd, _N_BYTES)
        self._seen = _Pulse.from_buffer(self._memory)
        self._seen.n_threads = 1

    @property
    def n_steps(self) -> int:
        """Steps of the child so far, modulo 2**64."""
        return self._seen.n_steps

    @property
    def n_threads(self) -> int:
        """Threads of the child's present step; at least 1, whatever the child wrote."""
        return max(1, self._seen.n_threads)

    def started(self) -> None:
        """Close the descriptors once the child has inherited them."""
        for fd in self.inherited:
            os.close(fd)
        self.inherited = ()


def _named_memory(name: str) -> mmap.mmap:  # pragma: no cover
    """Named shared memory of Windows, which ends with its last handle."""
    make: Any = mmap.mmap
    return make(-1, _N_BYTES, tagname=name)


def _nameless_file() -> int:
    """File of `_N_BYTES` without a name, which ends with its last descriptor; in memory if
    possible."""
    if sys.platform == "linux":
        fd = os.memfd_create("codespec-pulse")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.write(fd, bytes(_N_BYTES))  # a hole would need its place on the disk later
    return fd
