"""Rewriting with a real model's passes: the true text, whatever the model says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codespec.config import load_settings
from codespec_bench import rewrite_report
from codespec_bench.rewrite import TIMED


def test_real_passes_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "repo"
    root.mkdir()
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), "init", "-q"], check=True)
    lines = [f"a{i} = {i}\n" for i in range(24)]
    for changed in ("a9 = 9\n", "b9 = 10\n"):
        lines[9] = changed
        (root / "a.py").write_text("".join(lines))
        subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
        subprocess.run(["git", "-C", str(root), *identity, "commit", "-qm", "x"], check=True)
    settings = load_settings({"model": {"target": "", "draft": "", "n_threads": 1}}, env={})
    rows = rewrite_report.run_model(root, settings, 1, "*.py", "HEAD")
    by_config = {row["config"]: row for row in rows}
    assert tuple(by_config) == TIMED
    assert all(row["ms_per_token"] > 0 and row["model"] for row in rows)
    assert len({row["n_tokens"] for row in rows}) == 1
    assert by_config["codespec"]["mat"] > by_config["plain"]["mat"] == 1.0
    rewrite_report.print_rows(rows)
    shown = capsys.readouterr().out
    assert "codespec" in shown
    assert shown.count("prompt-lookup") == 1  # the best
