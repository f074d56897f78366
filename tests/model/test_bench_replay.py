"""The replay with the bundled pair, which completes the edits."""

from __future__ import annotations

import pytest

from codespec.config import load_settings
from codespec_bench.replay_report import print_model_rows, run_model
from tests.unit.test_bench_replay import repository

__all__ = ["repository"]

N_HUNKS = 1


def test_a_real_model_completes_the_edits(repository):
    rows = run_model(repository, load_settings(), 50, "*.py")
    by = {row["config"]: row for row in rows}
    assert list(by) == ["plain", "codespec", "ideal", "ideal-whole"]
    assert by["plain"]["n_hunks"] == N_HUNKS
    assert by["plain"]["speedup"] == 1.0
    assert by["plain"]["n_drafted"] == 0
    assert by["plain"]["n_tokens"] == by["codespec"]["n_tokens"] == by["ideal"]["n_tokens"]
    assert by["ideal"]["mat"] >= 1.0
    ours, (ideal, whole) = by["codespec"], (by[c]["speedup"] for c in ("ideal", "ideal-whole"))
    assert min(1.0, ideal) <= whole <= max(1.0, ideal)
    assert ours["share_of_ideal_whole"] == pytest.approx(ours["speedup"] / whole)
    assert by["codespec"]["equal_texts"] == 1.0
    assert "answers" not in by["codespec"]["by_source"], "nothing was said before"
    assert by["codespec"]["accepted"] <= by["codespec"]["n_drafted"]
    print_model_rows(rows)


def test_what_was_said_is_drafted_from_only_while_edits_are_typed(repository):
    rows = run_model(repository, load_settings(), 50, "*.py", n_keys=6)
    typed = {row["config"]: row for row in rows}["codespec"]
    assert typed["equal_texts"] == 1.0
    assert typed["n_hunks"] > N_HUNKS
    n_accepted, n_drafted = typed["by_source"]["answers"]
    assert 0 < n_accepted <= n_drafted
