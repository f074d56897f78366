"""`codespec bench drafts`: the pair beside a draft distilled a moment ago."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.config import load_settings
from codespec.distill.job import DistillJob
from codespec.distill.plan import DistillPlan
from codespec.errors import InputError
from codespec.models.bundled_pair import BUNDLED_DRAFT, bundled
from codespec_bench import drafts

LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def test_acceptance_and_speed_by_the_targets_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, n_tokens in (("PREFIX", 192), ("SUFFIX", 64)):
        monkeypatch.setenv(f"CODESPEC_COMPLETION_N_{name}_TOKENS", str(n_tokens))
    for name in ("decoder", "encoder", "scanner", "tool"):
        (tmp_path / f"{name}.py").write_text((LIBRARY / "json" / f"{name}.py").read_text())
    DistillJob(load_settings({"model": {"n_threads": 1}}), tmp_path).run(
        DistillPlan(n_tokens=1_000, tokens=6_000, n_places=1)
    )
    free = tmp_path / "free.json"
    free.write_text(json.dumps({"t1_ms": 1000.0, "n": [1, 64], "ratio": [1.0, 1.0]}))
    dear = tmp_path / "dear.json"
    dear.write_text(json.dumps({"t1_ms": 1000.0, "n": [1, 2, 64], "ratio": [1.0, 2.0, 64.0]}))
    output = tmp_path / "results.jsonl"
    args = ["bench", "drafts", str(tmp_path), "--places", "2", "--output", str(output)]
    args += ["--draft", str(bundled(BUNDLED_DRAFT)), "--curve", str(free), "--curve", str(dear)]
    shown = CliRunner().invoke(main, args)
    assert shown.exit_code == 0, shown.output
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    drawn = [(row["draft"], row["curve"]) for row in rows]
    names = ("bundled", "distilled", "codespec-draft")
    assert drawn == [(name, c) for name in names for c in ("here", str(free), str(dear))]
    for row in rows:
        assert 0 <= row["acceptance"] <= 1
        assert row["n_drafted"] > 0
        if row["curve"] == "here":
            assert row["clock_model"] > 0
    own, other = rows[:3], rows[6:]
    assert own[0]["acceptance"] == other[0]["acceptance"], "one file, named twice"
    for row in (rows[1], rows[4]):
        assert row["drafting"] > 0.3, "width costs nothing"
        assert row["model"] > 1
        assert row["both"] >= 1
    for row in (rows[2], rows[5]):
        assert row["drafting"] == 0, "a token more costs a pass more"
        assert row["model"] == pytest.approx(1, rel=1e-3)
        assert row["lookups"] == pytest.approx(1, rel=1e-3)
    assert "distilled" in shown.stdout


def test_without_any_draft_model(tmp_path: Path) -> None:
    settings = load_settings({"model": {"draft": ""}}, env={})
    with pytest.raises(InputError, match="no draft model"):
        drafts.run(tmp_path, settings)
