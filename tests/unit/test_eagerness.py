"""Probabilities of lines, and what a user's own outcomes make of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from codespec.suggest.eagerness import (
    LineScore,
    chance,
    least_total,
    line_scores,
    log_odds,
    n_likely,
    probability,
)
from codespec.usage.kept_odds import BARS, MOST_SHIFT, KeptOdds
from codespec.usage.statistics import Stats
from codespec.usage.suppression import PlaceKind

HERE = "python", PlaceKind.WITHIN_LINE


def test_a_token_belongs_to_the_line_that_it_begins_in() -> None:
    """ "x" repeats text before the cursor, the third token goes over a line end, and the last
    log-probability is of the token that ended the text."""
    raw, ends = b"xab\ncd", [1, 3, 5, 6]
    first, whole = line_scores(raw, 1, ends, [-9.0, -1.0, -2.0, -0.5, -0.25], 2)
    assert first == LineScore(2, 1, 2, -3.0)
    assert whole == LineScore(5, 2, 4, -3.75)


def test_a_line_is_judged_by_nothing_behind_it() -> None:
    raw, ends, log_probs = b"ab\ncd\nef", [1, 3, 6, 7, 8], [-1.0, -0.5, -2.0, -0.1, -3.0]
    whole = line_scores(raw, 0, ends, log_probs, 3)
    assert line_scores(raw[:6], 0, ends[:3], log_probs[:3], 2) == whole[:2]


def test_without_log_probabilities_length_and_place_decide() -> None:
    short, long = (line_scores(text, 0, [len(text)], [], 1)[0] for text in (b"x)", b"y" * 70))
    assert short.n_tokens == 0
    assert chance(short, "within_line") > chance(long, "within_line") > 0


def test_what_the_model_says_decides_among_texts_of_one_length() -> None:
    for kind in PlaceKind:
        sure = chance(LineScore(20, 1, 5, -0.1), kind.value)
        unsure = chance(LineScore(20, 1, 5, -9.0), kind.value)
        assert 1 > sure > 0.3 > unsure > 0


def test_lines_end_before_the_first_unlikely_one() -> None:
    chances = [0.5, 0.2, 0.4]
    assert n_likely(chances, 0.0, 0.0, 0) == 3
    assert n_likely(chances, 0.3, 0.0, 0) == 1
    assert n_likely(chances, 0.6, 0.0, 0) == 0
    assert n_likely(chances, 0.6, 1.0, 0) == 1  # this user keeps more than was said
    assert n_likely(chances, 0.6, 0.0, 2) == 2  # which the editor shows already
    assert n_likely(chances, 0.3, 0.0, 9) == 3


@pytest.mark.parametrize("kind", list(PlaceKind))
@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.8])
def test_the_least_log_probability_is_where_a_text_becomes_likely(
    kind: PlaceKind, shift: float
) -> None:
    for bar in (0.02, 0.08, 0.2, 0.6):
        for n_lines in (0, 1, 4):
            least = least_total(kind.value, n_lines, bar, shift)
            assert least < 0
            for total, n in ((least - 1e-3, 0), (least + 1e-3, 1)):
                said = chance(LineScore(20, n_lines, 5, total), kind.value)
                assert n_likely([said], bar, shift, 0) == n


def test_any_log_probability_does_where_nothing_is_held_back() -> None:
    assert least_total("within_line", 1, 0.0, 0.0) == -math.inf


def test_log_odds_and_probabilities_are_inverse() -> None:
    for share in (0.001, 0.3, 0.5, 0.99):
        assert probability(log_odds(share)) == pytest.approx(share)
    assert 0 < probability(-1e9) < probability(1e9) < 1


def outcomes(n: int, said: float, n_kept: int, stats: Stats | None = None) -> KeptOdds:
    """`n` suggestions of a probability that were shown, some of which were kept."""
    odds = KeptOdds(stats)
    for i in range(n):
        odds.shown(*HERE, said)
        if i < n_kept:
            odds.accepted(*HERE)
    return odds


def shift(odds: KeptOdds) -> float:
    found = odds.eagerness("medium", *HERE)
    assert found is not None
    assert found.bar == BARS["medium"]
    return found.shift


def test_all_is_suggested_at_high() -> None:
    assert outcomes(50, 0.5, 0).eagerness("high", *HERE) is None
    assert BARS["medium"] < BARS["low"]


def test_a_user_who_keeps_what_was_said_changes_nothing() -> None:
    assert shift(KeptOdds(None)) == 0
    assert shift(outcomes(40, 0.25, 10)) == pytest.approx(0)


def test_a_user_who_keeps_less_is_shown_less_and_who_keeps_more_more() -> None:
    assert -MOST_SHIFT <= shift(outcomes(60, 0.4, 2)) < shift(outcomes(10, 0.4, 0)) < 0
    assert 0 < shift(outcomes(40, 0.2, 20)) <= MOST_SHIFT
    below = outcomes(60, 0.4, 2).eagerness("low", "python", PlaceKind.BELOW)
    assert below is not None
    assert (below.shift, below.shift_below) == (0, 0)  # of other places nothing is known


def test_outcomes_are_counted_below_a_line_by_themselves() -> None:
    odds = KeptOdds(None)
    for _ in range(50):
        odds.shown("go", PlaceKind.BELOW, 0.5)
    found = odds.eagerness("medium", "go", PlaceKind.EMPTY_LINE)
    assert found is not None
    assert (found.shift, found.shift_below < -0.5) == (0, True)


def test_outcomes_are_kept_for_the_next_session(tmp_path: Path) -> None:
    stats = Stats(tmp_path / "stats.db")
    before = outcomes(30, 0.5, 5, stats)
    stats.flush()
    after = KeptOdds(None)
    after.learn(Stats(tmp_path / "stats.db").outcomes())
    assert shift(after) == pytest.approx(shift(before))
    assert shift(after) < 0
