"""Guard of drafters for engines: what a drafter does wrong costs a draft, never the engine."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pytest

from codespec.serving import row_guard
from codespec.serving.counters import RowCounters
from codespec.serving.row_guard import RowGuard
from codespec.serving.rows import RowFeed, RowState, RowStep

N_VOCAB, N_MAX = 100, 4
LONG_MS = 60_000.0  # of a budget that a slow machine does not use up


class Scripted:
    """A drafter that answers with anything. asked: rows that it was sent."""

    def __init__(self, answer: Callable[[Sequence[RowStep]], Any]) -> None:
        self.answer = answer
        self.asked: list[list[tuple[Hashable, int, list[int]]]] = []
        self.ended: list[Hashable] = []

    def draft(self, steps: Sequence[RowStep], ended: Sequence[Hashable], ms: float) -> Any:
        self.asked.append([(step.key, step.start, step.tokens.tolist()) for step in steps])
        self.ended += ended
        return self.answer(steps)


def rows(*lengths: int) -> list[RowState]:
    """Rows "0", "1", ... of so many tokens, one of them the prompt."""
    ids = np.arange(50, dtype=np.int32)
    return [RowState(str(i), ids, n, 1, N_MAX) for i, n in enumerate(lengths)]


def guard_of(drafter: Any, budget_ms: float = LONG_MS) -> tuple[RowGuard, RowCounters]:
    counters = RowCounters()
    return RowGuard(drafter, N_VOCAB, budget_ms, counters), counters


def raises(steps: Sequence[RowStep]) -> Any:
    raise RuntimeError("on purpose")


def exits(steps: Sequence[RowStep]) -> Any:
    raise SystemExit(3)


def raises_midway(steps: Sequence[RowStep]) -> Any:
    yield [1]
    raise ValueError("on purpose")


@pytest.mark.parametrize(
    ("answer", "second"),
    [
        (raises, []),
        (exits, []),
        (raises_midway, []),
        (lambda steps: None, []),
        (lambda steps: 7, []),
        (lambda steps: [[1]], []),
        (lambda steps: [[1], [2], [3]], []),
        (lambda steps: itertools.repeat([1]), []),
        (lambda steps: [[1], [10**7, 2]], []),
        (lambda steps: [[1], [5, N_VOCAB, 6]], [5]),
        (lambda steps: [[1], [5, -1]], [5]),
        (lambda steps: [[1], [5, -(10**30)]], [5]),
        (lambda steps: [[1], list(range(30))], [0, 1, 2, 3]),
        (lambda steps: [[1], itertools.count()], [0, 1, 2, 3]),
        (lambda steps: [[1], [1.5, 2.5]], []),
        (lambda steps: [[1], ["5"]], []),
        (lambda steps: [[1], None], []),
        (lambda steps: [[1], 3], []),
        (lambda steps: [np.array([1]), np.array([2, 3], np.int64)], [2, 3]),
        (lambda steps: np.array([[1, 2], [3, 4]]), [3, 4]),
        (lambda steps: ([9], (8, 7)), [8, 7]),
    ],
)
def test_only_sound_ids_reach_the_engine(answer, second):
    guard, counters = guard_of(Scripted(answer))
    chains = guard.draft(rows(5, 5), ["0", "1"])
    assert chains[1] == second
    for chain in chains:
        assert type(chain) is list
        assert all(type(token) is int for token in chain)
    good = Scripted(lambda steps: [[1, 2]] * len(steps))
    guard._drafter = good
    assert guard.draft(rows(6, 6), ["0", "1"]) == [[1, 2], [1, 2]]
    assert counters.n_late == 0


def test_a_failed_step_is_sent_again_whole():
    drafter = Scripted(lambda steps: [[]] * len(steps))
    guard, _ = guard_of(drafter)
    guard.draft(rows(3), ["0"])
    guard.draft(rows(5), ["0"])
    drafter.answer = raises
    guard.draft(rows(6), ["0"])
    drafter.answer = lambda steps: [[]] * len(steps)
    guard.draft(rows(7), ["0"])
    told = [[(start, len(tokens)) for _, start, tokens in asked] for asked in drafter.asked]
    assert told == [[(0, 3)], [(3, 2)], [(5, 1)], [(0, 7)]]


def test_what_ended_is_told_until_it_was_read():
    drafter = Scripted(raises)
    guard, _ = guard_of(drafter)
    guard.draft(rows(3, 3), ["0", "1"])
    drafter.answer = lambda steps: [[]] * len(steps)
    guard.draft(rows(4, 4), ["0", "1"])
    drafter.answer = raises
    guard.draft(rows(5), ["0"])
    drafter.answer = lambda steps: [[]] * len(steps)
    guard.draft(rows(6), ["0"])
    assert drafter.ended == ["1", "1"]


def test_what_ended_while_the_drafter_hung_is_told():
    goes_on = threading.Event()
    drafter = Scripted(lambda steps: (goes_on.wait(), [[]] * len(steps))[1])
    guard, _ = guard_of(drafter, budget_ms=20)
    guard.draft(rows(3, 3), ["0", "1"])
    late = guard._late
    assert late is not None
    goes_on.set()
    assert late.is_done.wait(30)
    guard._is_ready()
    guard._rests_until_s = 0.0
    guard._budget_ms = LONG_MS
    guard.draft(rows(4), ["0"])
    assert drafter.ended == ["1"]


def test_a_row_that_became_shorter_is_sent_whole():
    feed = RowFeed()
    feed.steps(rows(9), ["0"])
    (step,), _ = feed.steps(rows(4), ["0"])
    assert (step.start, step.tokens.tolist()) == (0, [0, 1, 2, 3])


def test_rows_are_copies():
    ids = np.arange(9, dtype=np.int32)
    (step,), _ = RowFeed().steps([RowState("a", ids, 4, 2, N_MAX)], ["a"])
    ids[:] = 77
    assert step.tokens.tolist() == [0, 1, 2, 3]


def test_a_hang_costs_two_budgets_once(monkeypatch):
    goes_on = threading.Event()
    drafter = Scripted(lambda steps: (goes_on.wait(), [[1]])[1])
    guard, counters = guard_of(drafter, budget_ms=20)
    assert guard.draft(rows(3), ["0"]) == [[]]
    assert counters.n_late == 1
    waited_ms = counters.ms
    for _ in range(1000):
        assert guard.draft(rows(4), ["0"]) == [[]]
    assert (counters.n_late, counters.n_left_out) == (1, 1000)
    assert len(drafter.asked) == 1
    assert waited_ms >= 40

    # Then it rests, and is asked again with the whole row.
    monkeypatch.setattr(row_guard, "REST", 0)
    late = guard._late
    assert late is not None
    goes_on.set()
    assert late.is_done.wait(30)
    guard._budget_ms = LONG_MS
    assert guard.draft(rows(6), ["0"]) == [[1]]
    assert drafter.asked[-1] == [("0", 0, [0, 1, 2, 3, 4, 5])]


def test_a_drafter_that_was_late_rests():
    goes_on = threading.Event()
    drafter = Scripted(lambda steps: (goes_on.wait(), [[1]])[1])
    guard, counters = guard_of(drafter, budget_ms=1)
    guard.draft(rows(3), ["0"])
    late = guard._late
    assert late is not None
    late.asked_s -= 1000  # it hung for long
    goes_on.set()
    assert late.is_done.wait(30)
    assert guard.draft(rows(4), ["0"]) == [[]]
    assert guard._late is None
    assert (len(drafter.asked), counters.n_late) == (1, 1)


def test_nobody_is_asked_without_rows():
    drafter = Scripted(raises)
    guard, counters = guard_of(drafter)
    assert guard.draft([], []) == []
    assert drafter.asked == []
    assert counters.n_steps == 1
