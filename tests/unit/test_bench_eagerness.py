"""Figures of `completion.eagerness`: what a rule shows, and the best one by length alone."""

from __future__ import annotations

import pytest

from codespec.suggest.eagerness import LineScore
from codespec_bench.eager_places import Lines
from codespec_bench.eager_report import (
    best_by_length,
    by_chance,
    by_length,
    figures,
    print_rows,
    rows_of,
)


def lines(n_chars: list[int], total: list[float], right: list[bool]) -> Lines:
    """A suggestion with so many characters and such a log-probability up to each line."""
    scores = [
        LineScore(n, i + 1, 4, log_prob)
        for i, (n, log_prob) in enumerate(zip(n_chars, total, strict=True))
    ]
    return Lines(
        repository="r", language="python", at="block", kind="within_line", scores=scores,
        n_chars=n_chars, right=right,
    )  # fmt: skip


FOUND = [
    lines([10, 30], [-0.1, -9.0], [True, False]),
    lines([12], [-0.2], [True]),
    lines([8], [-7.0], [False]),
    lines([40], [-0.1], [True]),
]


def test_all_is_shown_without_a_bar() -> None:
    all_of = figures(FOUND, lambda each: len(each.scores))
    assert (all_of["shown"], all_of["exact"], all_of["shown_chars"]) == (4, 0.5, 90)
    assert (all_of["exact_kept"], all_of["exact_chars_kept"]) == (1, 1)


def test_a_bar_cuts_and_holds_back() -> None:
    some = figures(FOUND, by_chance(0.3))
    assert (some["shown"], some["exact"], some["shown_chars"]) == (3, 1, 62)
    # The line that was cut off made the first suggestion wrong.
    assert some["exact_kept"] == 1.5
    assert some["exact_chars_kept"] == pytest.approx(62 / 52)


def test_rules_by_length_cut_or_hold_back() -> None:
    assert figures(FOUND, by_length(12, is_whole=False))["shown_chars"] == 30
    assert figures(FOUND, by_length(12, is_whole=True))["shown_chars"] == 20


def test_the_best_rule_by_length_keeps_as_many_right_characters() -> None:
    best = figures(FOUND, best_by_length(FOUND, {"exact_chars_kept": 0.2}))
    assert (best["exact"], best["shown"]) == (pytest.approx(2 / 3), 3)
    assert figures(FOUND, best_by_length(FOUND, {"exact_chars_kept": 1.0}))["exact"] == 0.5


def test_a_row_for_each_kind_rule_and_bin(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(rows_of(FOUND, "model"))
    assert [row["rule"] for row in rows if row["kind"] == "block"] == [
        "high", "medium", "medium, by length", "low", "low, by length",
    ]  # fmt: skip
    said = [row for row in rows if row["kind"] == "said"]
    assert sum(row["n"] for row in said) == len(FOUND)
    assert all(0 <= row["said"] <= 1 for row in said)
    print_rows(rows)
    shown = capsys.readouterr().out
    assert "medium, by length" in shown
    assert "block: model" in shown
