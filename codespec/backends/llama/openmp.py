"""Spin time of llama.cpp's threads, where they are those of GCC's OpenMP (Linux)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

# Polls of a waiting thread before it sleeps: 0.4 to 1.4 ms by processor, somewhat longer than from
# one pass to the next. With the default, ten times as long, others wait that long for a core after
# each pass; and where a neighbour has one of the cores, each of the hundreds of barriers in a pass
# takes as long: polling threads keep the one that all wait for off that core.
SPINS = "30000"

_SPINS, _POLICY = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"


@contextlib.contextmanager
def short_waits() -> Generator[None]:
    """Set a short spin time while the library is loaded, which is when it reads its environment.
    The user's own settings win, and child processes inherit none of ours."""
    if {_SPINS, _POLICY} & os.environ.keys():
        yield
        return
    os.environ[_SPINS] = SPINS
    try:
        yield
    finally:
        del os.environ[_SPINS]
