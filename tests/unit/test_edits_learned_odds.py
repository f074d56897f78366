"""Outcomes of next edits correct the probability of later ones, by workspace and kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codespec.edits.base import LineEdit
from codespec.edits.learned_odds import LearnedOdds
from codespec.usage.kept_odds import MOST_SHIFT
from codespec.usage.statistics import MAX_HABIT

REPLACE = LineEdit("/w/a.py", 0, ("a",), ("b",), 0.5, "replace")
BLOCK = replace(REPLACE, line=3, chance=0.6, kind="block")


def chances(learned: LearnedOdds, workspace: str = "/w") -> dict[str, float]:
    return {e.kind: e.chance for e in learned.corrected(workspace, [BLOCK, REPLACE])}


def test_nothing_is_corrected_before_anything_was_learned() -> None:
    assert LearnedOdds().corrected("/w", [BLOCK, REPLACE]) == [BLOCK, REPLACE]


def test_dismissed_kinds_become_less_likely_in_their_workspace_alone() -> None:
    learned = LearnedOdds()
    for _ in range(40):
        learned.learn("/w", "block", 0.6, made=False)
        learned.learn("/w", "replace", 0.5, made=True)
    found = chances(learned)
    assert found["block"] < 0.6
    assert found["replace"] > 0.5
    assert [e.kind for e in learned.corrected("/w", [BLOCK, REPLACE])] == ["replace", "block"]
    assert chances(learned, "/v") == {"block": 0.6, "replace": 0.5}


def test_what_comes_as_often_as_was_said_corrects_nothing() -> None:
    learned = LearnedOdds()
    for i in range(40):
        learned.learn("/w", "replace", 0.5, made=i % 2 == 0)
    assert chances(learned)["replace"] == pytest.approx(0.5)


def test_corrections_are_bounded_and_can_change_again() -> None:
    learned = LearnedOdds()
    for _ in range(10 * MAX_HABIT):
        learned.learn("/w", "replace", 0.5, made=False)
    lowest = chances(learned)["replace"]
    assert lowest == pytest.approx(1 / (1 + 2.718281828**MOST_SHIFT), abs=1e-6)
    for _ in range(MAX_HABIT):
        learned.learn("/w", "replace", 0.5, made=True)
    assert chances(learned)["replace"] > lowest


def test_counts_are_kept_by_workspace_without_any_name_of_it(tmp_path: Path) -> None:
    learned = LearnedOdds(tmp_path / "edits")
    for _ in range(20):
        learned.learn("/home/me/secret-project", "block", 0.6, made=False)
    before = chances(learned, "/home/me/secret-project")
    learned.save()
    files = list((tmp_path / "edits").iterdir())
    assert len(files) == 1
    assert "secret" not in files[0].name + files[0].read_text()
    again = LearnedOdds(tmp_path / "edits")
    assert chances(again, "/home/me/secret-project") == before
    assert chances(again) == {"block": 0.6, "replace": 0.5}


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"block": 1}', b'{"block": {"n_shown": 9, "said": 99}}']
)
def test_damaged_files_count_nothing(tmp_path: Path, damage: bytes) -> None:
    learned = LearnedOdds(tmp_path)
    learned.learn("/w", "block", 0.6, made=False)
    learned.save()
    [file] = tmp_path.iterdir()
    file.write_bytes(damage)
    assert chances(LearnedOdds(tmp_path)) == {"block": 0.6, "replace": 0.5}


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    learned = LearnedOdds(tmp_path / "file" / "edits")
    learned.learn("/w", "block", 0.6, made=False)
    learned.save()
    assert chances(learned)["block"] < 0.6
