"""Drafters for engines are not trusted: whatever one does costs a draft, never the engine.

An engine ends for good where its drafter raises or drafts an id that the model lacks, and all its
clients wait where it hangs. So a drafter runs in a thread of its own. The engine waits two budgets
of time at most; while the drafter is still busy, and for a while after, the engine does not ask
again. What a draft holds is checked in that thread, as it may be anything.
"""

from __future__ import annotations

import itertools
import logging
import operator
import queue
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from codespec.serving.counters import RowCounters
from codespec.serving.rows import RowDrafter, RowFeed, RowState, RowStep

log = logging.getLogger(__name__)

REST = 10
"""Rest of a drafter that was late, in times of what it took."""
MOST_REST_S = 60.0
_MOST_WARNINGS = 3


class _Call:
    """One step's question to the drafter, and its answer; `chains` is None where it failed.

    ask: the question. Called in the drafter's thread.
    """

    def __init__(self, ask: Callable[[], list[list[int]] | None]) -> None:
        self._ask = ask
        self.asked_s = time.monotonic()
        self.answered_s = 0.0
        self.is_done = threading.Event()
        self.chains: list[list[int]] | None = None

    def answer(self) -> None:
        self.chains = self._ask()
        self.answered_s = time.monotonic()
        self.is_done.set()


def _answer_all(calls: queue.SimpleQueue[_Call | None]) -> None:
    """The drafter's thread. It keeps nothing alive between two calls; None ends it."""
    while (call := calls.get()) is not None:
        call.answer()
        del call


class RowGuard:
    """A drafter behind its guard. One thread of the engine only.

    n_vocab:   size of the target's vocabulary: drafts end before an id at or above it.
    budget_ms: time that a step may take; the drafter is told of it, and waited for twice as long.
    """

    def __init__(
        self, drafter: RowDrafter, n_vocab: int, budget_ms: float, counters: RowCounters
    ) -> None:
        self._drafter = drafter
        self._n_vocab = n_vocab
        self._budget_ms = budget_ms
        self._counters = counters
        self._feed = RowFeed()
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._late: _Call | None = None  # was not waited for any longer
        self._rests_until_s = 0.0
        self._n_warnings = 0
        answering = threading.Thread(
            target=_answer_all, args=(self._calls,), name="codespec-rows", daemon=True
        )
        answering.start()
        weakref.finalize(self, self._calls.put, None)

    def draft(self, rows: Sequence[RowState], live: Iterable[Hashable]) -> list[list[int]]:
        """A chain of sound ids for each row. live: see `RowFeed.steps`."""
        counters, start = self._counters, time.perf_counter()
        counters.n_steps += 1
        counters.n_rows += len(rows)
        chains = self._asked(rows, live) if rows else None
        if chains is None:
            chains = [[] for _ in rows]
        counters.n_drafted += sum(map(len, chains))
        took_ms = (time.perf_counter() - start) * 1e3
        counters.ms += took_ms
        counters.most_ms = max(counters.most_ms, took_ms)
        return chains

    def do(self, work: Callable[[], None]) -> None:
        """Have the drafter's thread do something between two steps. Returns at once."""

        def done() -> None:
            try:
                work()
            except Exception as e:
                self._counters.n_failed += 1
                self._warn(f"raised {type(e).__name__}")

        self._calls.put(_Call(done))

    def _asked(self, rows: Sequence[RowState], live: Iterable[Hashable]) -> list[list[int]] | None:
        if not self._is_ready():
            self._counters.n_left_out += 1
            return None
        steps, ended = self._feed.steps(rows, live)
        call = _Call(partial(self._answered, steps, ended))
        self._calls.put(call)
        if not call.is_done.wait(2 * self._budget_ms / 1e3):
            self._counters.n_late += 1
            self._late = call
            self._warn("took more than twice its time for a step")
        if call.chains is None:
            self._feed.lost(ended)
        return call.chains if self._late is None else None

    def _is_ready(self) -> bool:
        """False while the drafter is busy with a step that went on without it, or rests after."""
        late = self._late
        if late is not None:
            if not late.is_done.is_set():
                return False
            took_s = late.answered_s - late.asked_s
            self._rests_until_s = late.answered_s + min(MOST_REST_S, REST * took_s)
            self._late = None
            self._feed.lost(())
        return time.monotonic() >= self._rests_until_s

    def _warn(self, what: str) -> None:
        self._n_warnings += 1
        if self._n_warnings <= _MOST_WARNINGS:
            # No traceback: it may carry source text in its values.
            log.warning("codespec: the drafter %s; the engine goes on without drafts", what)

    # ---- the drafter's thread

    def _answered(
        self, steps: Sequence[RowStep], ended: Sequence[Hashable]
    ) -> list[list[int]] | None:
        try:
            found = self._drafter.draft(steps, ended, self._budget_ms)
            return self._sound(found, steps)
        except BaseException as e:
            self._counters.n_failed += 1
            self._warn(f"raised {type(e).__name__}")
            return None

    def _sound(self, found: Any, steps: Sequence[RowStep]) -> list[list[int]]:
        """The drafts, cut to what the engine can take. Raises: whatever a wrong object raises."""
        rows = list(itertools.islice(found, len(steps) + 1))
        if len(rows) != len(steps):
            raise ValueError("a draft is needed for each row")
        return [self._sound_row(row, step) for row, step in zip(rows, steps, strict=True)]

    def _sound_row(self, row: Any, step: RowStep) -> list[int]:
        chain: list[int] = []
        try:
            for token in itertools.islice(row, max(0, step.n_max) + 1):
                number = operator.index(token)
                if not 0 <= number < self._n_vocab or len(chain) == step.n_max:
                    self._counters.n_refused += 1
                    break
                chain.append(number)
        except TypeError:  # no ids, or no row
            self._counters.n_refused += 1
            return []
        return chain
