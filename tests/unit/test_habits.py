"""Suggestions adapt to what is accepted, and can recover."""

from __future__ import annotations

import pytest

from codespec.usage.habits import MIN_SHOWN, TRIAL_EVERY, Habits
from codespec.usage.statistics import MAX_HABIT, Stats
from codespec.usage.suppression import PlaceKind, kind_of_place, why_suppressed

HERE = ("markdown", PlaceKind.WITHIN_LINE)


def passed_over(n: int, stats: Stats | None = None) -> Habits:
    habits = Habits(stats)
    for _ in range(n):
        habits.shown(*HERE)
    return habits


def test_what_is_never_accepted_is_made_now_and_then_only() -> None:
    habits = passed_over(MIN_SHOWN - 1)
    assert habits.why_not(*HERE) == ""
    habits.shown(*HERE)
    answers = [habits.why_not(*HERE) for _ in range(3 * TRIAL_EVERY)]
    assert [not why for why in answers].count(True) == 3
    assert f"0 of {MIN_SHOWN}" in answers[0]
    # Elsewhere nothing changes.
    assert habits.why_not("markdown", PlaceKind.EMPTY_LINE) == ""
    assert habits.why_not("python", PlaceKind.WITHIN_LINE) == ""


def test_one_accepted_trial_brings_suggestions_back() -> None:
    habits = passed_over(MIN_SHOWN)
    habits.accepted(*HERE)
    assert habits.why_not(*HERE) == ""


def test_old_habits_weigh_less_and_less() -> None:
    habits = Habits(None)
    habits.learn({HERE: (float(MAX_HABIT), 100.0)})
    n = 0
    while not habits.why_not(*HERE):
        habits.shown(*HERE)
        n += 1
    assert n < 8 * MAX_HABIT


def test_habits_outlive_a_session_and_are_shared(tmp_path) -> None:
    stats = Stats(tmp_path / "stats.db")
    assert stats.habits() == {}
    passed_over(30, stats)
    stats.flush()
    other = Stats(tmp_path / "stats.db")
    passed_over(20, other)
    Habits(other).accepted("", PlaceKind.COMMENT)
    other.flush()
    found = stats.habits()
    assert found == {HERE: (50, 0), ("text", PlaceKind.COMMENT): (0, 1)}
    later = Habits(stats)
    later.learn(found)
    assert later.why_not(*HERE)
    for _ in range(MAX_HABIT):
        stats.habit(*HERE, 1, 1)
    stats.flush()
    assert stats.habits()[HERE][0] <= MAX_HABIT


@pytest.mark.parametrize(
    ("text", "character", "kind"),
    [
        ("x = 1\n", 5, PlaceKind.WITHIN_LINE),
        ("    \n", 4, PlaceKind.EMPTY_LINE),
        ("    # a word\n", 12, PlaceKind.COMMENT),
        ("f(x)\n", 3, PlaceKind.BEFORE_CLOSING),
    ],
)
def test_kinds_of_places(text: str, character: int, kind: PlaceKind) -> None:
    assert kind_of_place(text[:character], text[character:]) == kind


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ("", ""),
        (")", ""),
        ('"):\n', ""),
        ("]) {", ""),
        (" */", ""),
        (" -->", ""),
        ("x", "a word goes on"),
        ("_", "a word goes on"),
        ("é", "a word goes on"),
        (" x", "more than closing punctuation"),
        (") + 1", "more than closing punctuation"),
        ("(", "more than closing punctuation"),
        ("- " + " " * 100_000 + "x", "more than closing punctuation"),
        (")" + " " * 100_000, ""),
    ],
    ids=lambda value: value[:20],
)
def test_places_where_suggestions_are_in_the_way(after: str, words: str) -> None:
    rule = why_suppressed(after, after)
    assert (rule.text if rule else "").startswith(words)
    assert bool(rule) == bool(words)
    assert why_suppressed(after, after, after_deletion=True)
