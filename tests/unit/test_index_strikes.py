"""Record of the files in work when a process died, as the next process reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codespec.index.strikes import MAX_KEYS, Strikes

A, B, C = "a" * 32, "b" * 32, "c" * 32

DYING = f"""
import os, pathlib, signal, sys
from codespec.index.strikes import Strikes
strikes = Strikes(pathlib.Path(sys.argv[1]), 2)
with strikes.in_work(0, "{C}"):
    pass
with strikes.in_work(0, "{A}"), strikes.in_work(1, "{B}"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def die(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DYING, str(folder)], check=False)
    assert done.returncode == -9


def test_a_death_is_a_strike_for_what_was_in_work(tmp_path: Path) -> None:
    for n in (1, 2):
        die(tmp_path)
        strikes = Strikes(tmp_path, 1)
        assert [strikes.count(k) for k in (A, B, C)] == [n, n, 0]
        strikes.close()
    strikes = Strikes(tmp_path, 2)  # nobody died in between
    assert strikes.count(A) == 2
    strikes.close()


def test_an_exception_is_no_strike(tmp_path: Path) -> None:
    strikes = Strikes(tmp_path, 1)
    with pytest.raises(ValueError, match="x"), strikes.in_work(0, A):
        raise ValueError("x")
    strikes.close()
    strikes = Strikes(tmp_path, 1)
    assert strikes.count(A) == 0
    strikes.close()


def test_damaged_records_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "strikes.json").write_bytes(b'{"a": "x"')
    (tmp_path / "in-flight").write_bytes(b"\xff\xfe  ")
    strikes = Strikes(tmp_path, 1)
    assert strikes.count(A) == 0
    strikes.close()


def test_the_record_stays_small(tmp_path: Path) -> None:
    (tmp_path / "in-flight").write_text(" ".join(f"{i:032x}" for i in range(MAX_KEYS + 10)))
    Strikes(tmp_path, 1).close()
    strikes = Strikes(tmp_path, 1)
    assert strikes.count(f"{9:032x}") == 0
    assert strikes.count(f"{10:032x}") == 1
    strikes.close()
