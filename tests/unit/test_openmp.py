"""llama.cpp's threads do not keep a core for longer than they need it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from codespec.backends.llama import openmp

_SCRIPT = (
    "import os; from codespec.backends.llama import openmp; print('GOMP_SPINCOUNT' in os.environ)"
)


def spins(**environment: str) -> tuple[str, bool]:
    """(what libgomp says that it does, whether children would be told to do the same)."""
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    env = {k: v for k, v in os.environ.items() if k not in names}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={**env, **environment, "OMP_DISPLAY_ENV": "VERBOSE"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if "GOMP_SPINCOUNT" in line]
    if not lines:
        pytest.skip("llama.cpp's threads are not libgomp's here")
    return lines[0].partition("=")[2].strip(" '"), "True" in done.stdout


def test_threads_that_wait_sleep_soon() -> None:
    assert spins() == (openmp.SPINS, False)


def test_the_users_settings_come_first() -> None:
    assert spins(GOMP_SPINCOUNT="7") == ("7", True)
    assert spins(OMP_WAIT_POLICY="active")[0] not in (openmp.SPINS, "7")
