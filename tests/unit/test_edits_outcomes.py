"""Outcomes of proposals: made or dismissed."""

from __future__ import annotations

import pytest

from codespec.documents.edit_history import LineChange
from codespec.edits.base import LineEdit
from codespec.edits.learned_odds import LearnedOdds
from codespec.edits.proposal_outcomes import MAX_WAITING, ProposalOutcomes

EDIT = LineEdit("/w/a.py", 4, ("load(1)",), ("read(1)",), 0.5, "replace")
KEY = EDIT.path, EDIT.old, EDIT.new


def chance(learned: LearnedOdds) -> float:
    return learned.corrected("/w", [EDIT])[0].chance


@pytest.fixture
def learned() -> LearnedOdds:
    return LearnedOdds()


def test_an_edit_that_was_made_counts_once(learned: LearnedOdds) -> None:
    outcomes = ProposalOutcomes(learned)
    outcomes.proposed("/w", EDIT)
    made = LineChange(EDIT.path, 3, ("x", *EDIT.old), ("y", *EDIT.new), 2)
    outcomes.seen("/w", [made], ())
    once = chance(learned)
    assert once > 0.5
    outcomes.seen("/w", [made], ())
    assert chance(learned) == once


def test_a_dismissed_edit_counts_once(learned: LearnedOdds) -> None:
    outcomes = ProposalOutcomes(learned)
    outcomes.proposed("/w", EDIT)
    outcomes.proposed("/w", EDIT)
    outcomes.seen("/w", [], {KEY})
    once = chance(learned)
    assert once < 0.5
    outcomes.seen("/w", [], {KEY})
    assert chance(learned) == once


def test_a_dismissed_edit_that_is_made_after_all_counts_as_made(learned: LearnedOdds) -> None:
    outcomes = ProposalOutcomes(learned)
    outcomes.proposed("/w", EDIT)
    outcomes.seen("/w", [], {KEY})
    outcomes.seen("/w", [], {KEY})
    assert chance(learned) < 0.5
    made = LineChange(EDIT.path, 4, EDIT.old, EDIT.new, 1)
    outcomes.seen("/w", [made], ())
    assert outcomes.news() == (1, 1)
    by_hand = LearnedOdds()
    by_hand.learn("/w", EDIT.kind, EDIT.chance, made=True)
    assert chance(learned) == chance(by_hand)
    outcomes.seen("/w", [made], ())
    assert outcomes.news() == (0, 0)


def test_nothing_is_learned_of_what_was_not_proposed_or_is_still_open(
    learned: LearnedOdds,
) -> None:
    outcomes = ProposalOutcomes(learned)
    outcomes.seen("/w", [], {KEY})
    outcomes.proposed("/v", EDIT)
    outcomes.proposed("/w", EDIT)
    outcomes.seen("/w", [LineChange("/w/b.py", 4, EDIT.old, EDIT.new, 1)], ())
    outcomes.forget(EDIT.path)
    outcomes.seen("/w", [LineChange(EDIT.path, 4, EDIT.old, EDIT.new, 1)], ())
    assert chance(learned) == 0.5


def test_the_oldest_are_waited_for_no_longer(learned: LearnedOdds) -> None:
    outcomes = ProposalOutcomes(learned)
    outcomes.proposed("/w", EDIT)
    for i in range(MAX_WAITING):
        outcomes.proposed("/w", LineEdit(EDIT.path, i, (str(i),), (), 0.5, "block"))
    outcomes.seen("/w", [], {KEY})
    assert chance(learned) == 0.5


def test_outcomes_are_news_once(learned: LearnedOdds) -> None:
    outcomes = ProposalOutcomes(learned)
    other = LineEdit("/w/b.py", 1, ("a",), ("b",), 0.5, "replace")
    for edit in (EDIT, other):
        outcomes.proposed("/w", edit)
    assert outcomes.news() == (0, 0)
    outcomes.seen("/w", [LineChange(EDIT.path, 4, EDIT.old, EDIT.new, 1)], ())
    outcomes.seen("/w", [], {(other.path, other.old, other.new)})
    assert outcomes.news() == (1, 1)
    assert outcomes.news() == (0, 0)
