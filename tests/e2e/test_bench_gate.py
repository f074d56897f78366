"""Tokens a pass on our own history must not become fewer: `bench/baseline.jsonl`.

After a change that means to alter them:

    codespec bench replay . --until REVISION --commits 8 --curve CURVE --output now.jsonl   (both)
    codespec bench gate now.jsonl --baseline bench/baseline.jsonl --update
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REVISION = "14046b7"


def codespec(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "codespec", "bench", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_drafting_is_as_good_as_the_baseline(tmp_path: Path) -> None:
    known = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "-e", f"{REVISION}^{{commit}}"], check=False
    )
    if known.returncode:
        pytest.skip("this checkout has no history to replay")
    results = tmp_path / "results"
    for curve in ("cpu-500m-q8", "gpu-flat"):
        args = ("--until", REVISION, "--commits", 8, "--curve", curve, "--output", results)
        done = codespec("replay", ROOT, *args)
        assert done.returncode == 0, done.stderr
    gate = codespec("gate", results, "--baseline", ROOT / "bench" / "baseline.jsonl")
    assert gate.returncode == 0, gate.stdout
