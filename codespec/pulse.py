"""Signs of life: how far this process is, in memory that the one which started it looks at.

A worker that computes for long and one that hangs look the same from outside. Who does long work
counts its steps here: passes and their parts, pieces of a parse, parts of a model that is loaded.
Native code counts at the same place, as it can while other threads wait for the interpreter.
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
    """n_steps: how many were taken, modulo 2**64. n_threads: how many compute the present one."""

    _fields_ = (("n_steps", ctypes.c_uint64), ("n_threads", ctypes.c_uint64))
    n_steps: int
    n_threads: int


_own = _Pulse(0, 1)


def step() -> None:
    """Something was done: to be said at least once a second of processor time. 0.1 us."""
    _own.n_steps += 1


def computing(n_threads: int) -> None:
    """From now on so many threads are at work, each of which may take a second for a step."""
    _own.n_threads = n_threads


def steps_address() -> int:
    """Address at which native code counts steps: 64 bits, for the rest of the process."""
    return ctypes.addressof(_own)


def share(name: str) -> None:
    """From now on, the parent sees how far this process is. Before anything is told where to count.

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
    """That of a child, as its parent sees it. Raises: OSError where there is no memory for it."""

    def __init__(self) -> None:
        self.inherited: tuple[int, ...] = ()
        """Descriptors that the child needs."""
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
        return self._seen.n_steps

    @property
    def n_threads(self) -> int:
        """At least 1, whatever the child wrote."""
        return max(1, self._seen.n_threads)

    def started(self) -> None:
        """The child has its own descriptors."""
        for fd in self.inherited:
            os.close(fd)
        self.inherited = ()


def _named_memory(name: str) -> mmap.mmap:  # pragma: no cover
    """Memory of Windows' that is gone with who has it open."""
    make: Any = mmap.mmap
    return make(-1, _N_BYTES, tagname=name)


def _nameless_file() -> int:
    """A file of `_N_BYTES` that is gone with who has it open; in memory where the system can."""
    if sys.platform == "linux":
        fd = os.memfd_create("codespec-pulse")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.write(fd, bytes(_N_BYTES))  # a hole would need its place on the disk later
    return fd
