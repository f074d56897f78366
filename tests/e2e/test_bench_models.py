"""`codespec bench models`, on a small package; its bits per byte against torch's."""

from __future__ import annotations

import json
import math
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.cli import main
from codespec.models.bundled_pair import BUNDLED_DRAFT, bundled
from codespec_bench import models

LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def test_figures_of_the_bundled_draft(tmp_path: Path) -> None:
    for name in ("decoder", "encoder", "scanner"):
        (tmp_path / f"{name}.py").write_text((LIBRARY / "json" / f"{name}.py").read_text())
    args = ["bench", "models", str(bundled(BUNDLED_DRAFT)), "--package", str(tmp_path)]
    result = CliRunner().invoke(main, [*args, "--places", "4", "--json"])
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)
    assert row["bench"] == "models"
    assert row["model"] == "codespec-draft"
    assert 0.8 < row["bits_per_byte"] < 3
    assert row["tok_per_s"] > 1
    assert row["order"] == "spm", "the order it is served in"
    for key in ("line_exact", "edit_similarity", "line_valid", "block_exact", "block_valid",
                "inline_exact", "inline_similarity", "inline_valid"):  # fmt: skip
        assert 0 <= row[f"fim_{key}"] <= 1
    assert row["fim_edit_similarity"] > 0
    assert row["n_lines"] == 4
    assert row["n_blocks"] == 2
    both = CliRunner().invoke(main, [*args, "--places", "4", "--order", "both", "--json"])
    rows = [json.loads(line) for line in both.stdout.splitlines()]
    assert [r["order"] for r in rows] == ["psm", "spm"]
    assert {**rows[1], "tok_per_s": 0} == {**row, "tok_per_s": 0}
    assert rows[0]["fim_edit_similarity"] != row["fim_edit_similarity"]
    assert row["n_bytes"] == sum(f.stat().st_size for f in tmp_path.glob("*.py"))


def test_models_side_by_side(tmp_path: Path) -> None:
    """At the same places: a model gains nothing over itself, and what another gains is the
    difference of what both scored."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "decoder.py").write_text((LIBRARY / "json" / "decoder.py").read_text())
    again = tmp_path / "codespec-draft.gguf"
    again.write_bytes(bundled(BUNDLED_DRAFT).read_bytes())
    args = ["bench", "models", str(bundled(BUNDLED_DRAFT)), str(again), "bundled"]
    args += ["--package", str(package), "--places", "6"]
    output = tmp_path / "results.jsonl"
    shown = CliRunner().invoke(main, [*args, "--output", str(output)])
    assert shown.exit_code == 0, shown.output
    first, same, target = (json.loads(line) for line in output.read_text().splitlines())
    assert first["n_lines"] == 6, "one file has as many places as are asked for"
    assert "gain" not in first
    assert first["model"] == "bundled/codespec-draft", "two of one name are told apart"
    assert same["model"] == f"{tmp_path.name}/codespec-draft"
    assert target["model"] == "codespec-base"
    assert set(same["gain"]) >= {"fim_line_exact", "fim_edit_similarity", "fim_block_valid"}
    assert all(gain == [0, 0] for gain in same["gain"].values())
    gain, noise = target["gain"]["fim_edit_similarity"]
    assert gain == pytest.approx(target["fim_edit_similarity"] - first["fim_edit_similarity"])
    assert noise > 0
    assert "±" in shown.stdout
    assert "codespec-base" in shown.stdout


@pytest.mark.parametrize("n", [1, 2, 64, 65, 66, 1023, 1024, 1025, 1500])
def test_every_token_of_a_text_is_paid_for_once(n: int) -> None:
    """In whatever passes and chunks; the law of a fake target looks three tokens back."""
    logits = hashed_logits(20)
    target = FakeTarget(logits, 20, eog=frozenset([19]), n_ctx=1200)
    tokens = np.random.default_rng(n).integers(0, 19, n).astype(np.int32)
    expected, ids = 0.0, [19, *tokens.tolist()]
    step = min(models.N_CHUNK, 1200 - 1 - target.can.max_draft)
    for i in range(n):
        first = i // step * step
        row = logits(tuple(ids[max(first, i - 2) : i + 1])).astype(float)
        expected += math.log(np.exp(row).sum()) - row[ids[i + 1]]
    assert models.cost(target, tokens) == pytest.approx(expected)


def test_a_package_of_small_files_is_an_error_in_words(tmp_path: Path) -> None:
    source = """if True:
        def area(radius, factor):
            pi = 3.14159
            return pi * radius * compute(radius, factor)
    """
    (tmp_path / "a.py").write_text(source)
    args = ["bench", "models", str(bundled(BUNDLED_DRAFT)), "--package", str(tmp_path)]
    result = CliRunner().invoke(main, [*args, "--places", "1"])
    assert result.exit_code == 1
    assert "no Python file of 500 to 60,000 bytes" in result.output
