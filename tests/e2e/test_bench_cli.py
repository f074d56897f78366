"""The smaller benchmarks from the command line, with the bundled model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from codespec.drafters.cost import CostCurve


def bench(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "codespec", "bench", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_measured_curve_serves_the_replay(tmp_path: Path) -> None:
    saved = tmp_path / "curve.json"
    kept = tmp_path / "results"
    done = bench(
        *("curve", "--context", 32, "--context", 64, "--repeats", 1),
        *("--json", "--save", saved, "--output", kept),
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["n_context"] for row in rows] == [32, 64]
    assert [json.loads(line) for line in kept.read_text().splitlines()] == rows
    assert rows[0]["n"][0] == 1
    assert rows[0]["ratio"][0] == 1.0

    from bench.replay_report import load_curve

    curve = load_curve(str(saved))
    assert isinstance(curve, CostCurve)
    assert list(curve.points) == rows[1]["n"]


def test_an_unknown_revision_is_named(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = bench("replay", tmp_path, "--until", "v0")
    assert done.returncode == 1
    assert "v0: no such commit" in done.stderr


def test_typing_in_an_indexed_workspace(tmp_path: Path) -> None:
    lines = [
        f"def function_{i}(first, second):\n    return first + {i} * second\n" for i in range(40)
    ]
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "module.py").write_text("\n".join(lines))
    done = bench(
        *("hop", "--workspace", folder, "--lines", 1, "--key-ms", 0, "--threads", 1),
        *("--storm", 40, "--json"),
        CODESPEC_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["tokens in the indexed workspace"]["n"] > 500
    assert rows["start to the reply to initialize"]["p50_ms"] > 0
    (storm,) = (row for row in rows.values() if "n_wrong" in row)
    assert (storm["n"], storm["n_wrong"]) == (40, 0)
    # Every key's request is in one of the rows.
    kinds = ("suggestion by the model", "typed through", "nothing to suggest, by the model")
    kinds = (*kinds, "nothing to suggest, without the model", "first")
    assert sum(rows[kind]["n"] for kind in kinds if kind in rows) >= 10
