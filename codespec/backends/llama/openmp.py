"""How llama.cpp's threads wait for each other, where they are OpenMP's of GCC (Linux)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

# How often a thread looks for work before it sleeps: 0.4 to 1.4 ms by processor, somewhat longer
# than from one pass to the next. The default, ten times as long, is what others wait for a core
# after each pass; and where a neighbour has one of the cores, what each of the hundreds of barriers
# in a pass takes: the thread that all wait for is kept from that core by those that look.
SPINS = "30000"

_SPINS, _POLICY = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"


@contextlib.contextmanager
def short_waits() -> Generator[None]:
    """For as long as the library is loaded, which is when it reads its settings: those of the user
    come first, and processes that are started later get none of ours."""
    if {_SPINS, _POLICY} & os.environ.keys():
        yield
        return
    os.environ[_SPINS] = SPINS
    try:
        yield
    finally:
        del os.environ[_SPINS]
