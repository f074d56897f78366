"""Suggestions adapt to what is accepted, and can recover."""

from __future__ import annotations

import pytest

from codespec.habits import MIN_SHOWN, TRIAL_EVERY, Habits
from codespec.occasions import kind_of_place, why_unwelcome
from codespec.stats import MAX_HABIT, Stats

HERE = ("markdown", "within a line")


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
    assert habits.why_not("markdown", "on empty lines") == ""
    assert habits.why_not("python", "within a line") == ""


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
    Habits(other).accepted("", "in comments")
    other.flush()
    found = stats.habits()
    assert found == {HERE: (50, 0), ("text", "in comments"): (0, 1)}
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
        ("x = 1\n", 5, "within a line"),
        ("    \n", 4, "on empty lines"),
        ("    # a word\n", 12, "in comments"),
        ("f(x)\n", 3, "before closing punctuation"),
    ],
)
def test_kinds_of_places(text: str, character: int, kind: str) -> None:
    assert kind_of_place(text[:character], text[character:]) == kind


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ("", ""),
        ("\nnext", ""),
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
    assert why_unwelcome(after).startswith(words)
    assert bool(why_unwelcome(after)) == bool(words)
    assert why_unwelcome(after, after_deletion=True)
