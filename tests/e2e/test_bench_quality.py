"""`codespec bench quality`, on a small package with the bundled draft as model."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

from click.testing import CliRunner

from codespec.cli import main
from codespec.models.registry import BUNDLED_DRAFT, bundled

LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def test_any_model_and_chosen_contexts(tmp_path: Path) -> None:
    source, answers = tmp_path / "json", tmp_path / "answers.jsonl"
    source.mkdir()
    for name in ("decoder", "encoder"):
        (source / f"{name}.py").write_text((LIBRARY / "json" / f"{name}.py").read_text())
    args = [
        "bench",
        "quality",
        str(source),
        "--places",
        "2",
        "--model",
        str(bundled(BUNDLED_DRAFT)),
    ]
    args += ["--draft-model", "none", "--only", "file", "--only", "+symbols"]
    result = CliRunner().invoke(main, [*args, "--json", "--answers", str(answers)])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["config"] for row in rows} == {"truth", "file", "+symbols"}
    assert {row["model"] for row in rows} == {"codespec-draft"}
    by = {(row["config"], row["kind"], row["language"]): row for row in rows}
    assert by["truth", "all", "all"]["exact"] == 1
    assert by["file", "all", "all"]["n"] == by["+symbols", "all", "all"]["n"] == 6
    assert by["file", "all", "all"]["with_context"] == 0
    assert "similarity_gain" in by["+symbols", "line", "python"]
    given = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(given) == 3 * 6
    shown = [row for row in given if row["config"] == "file" and row["text"]]
    assert len(shown) == by["file", "all", "all"]["shown"] * 6
    again = CliRunner().invoke(main, [*args, "--json"])
    same = [{**json.loads(line), "ms_p50": 0} for line in again.stdout.splitlines()]
    assert same == [{**row, "ms_p50": 0} for row in rows]
