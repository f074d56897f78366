"""How long decoding ought to take, from parts that were measured apart from it.

A pass costs what its number of tokens says, and those of the passes before: llama.cpp keeps its
graph for passes of one width and makes a new one for another, so a drafted pass and the plain one
after it both pay, the latter the more the wider the former was, since caches hold what that left
there; on a GPU, so does the second of a width. The first passes after a pause cost more, too:
weights of a small model are in caches that others had meanwhile. To the passes comes our own work,
drafting included, which passes of the smallest models do not hide; it is taken from another
decoding of the same request.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codespec.backends.base import Target
from codespec.cost.refined import N_SETTLING
from codespec.types import NO_DRAFT, Draft, SamplingParams, Tokens
from codespec.verify.accept import accept
from codespec.verify.sampling import Sampler

CONTEXTS = (128, 896)
"""Tokens of context; prompts of completions are about as long as one of these, or between."""

WIDTHS = tuple(range(1, 18))
"""Tokens of a pass. All small ones: where kernels change, a line between two others is wrong."""

PAUSE_S = 0.02
"""Before a request and before so much time of passes: on a busy machine what has slept goes first,
and is interrupted once it has had its turn."""

N_SINGLE, N_FELT = 12, 4
"""Passes over one token in a row that are timed; so many before them feel that a wide one was."""

N_COLD, COLD_MS = 12, 8.0
"""So many passes after a pause feel it, and no more than take so long: by then what a cache holds
has been read. A model much larger than that is read from memory in any case."""

BEFORE_SINGLE = 2
"""Tokens of the pass before a first one over one token."""

COLD_WIDTHS = (1, 2, 4, 8, 16)
"""Tokens of the passes that are timed after a pause. The wider, the less they feel it."""


@dataclass(frozen=True, slots=True)
class Run:
    """A decoding whose time is predicted. widths: tokens of its passes, in order, behind
    about n_context tokens. own_ms: our own work, all but what the target counts as passes, from
    another decoding of the request."""

    widths: Sequence[int]
    n_context: int
    own_ms: float


@dataclass(frozen=True, slots=True)
class TimedPasses:
    """Milliseconds of passes, as the target counts them.

    contexts:    (c,) tokens in the cache before a pass, ascending.
    widths:      (w,) tokens of the pass, ascending, beginning with 1.
    settled:     [k] (c, w) after k passes of the same width, the last for more; over one token
        after one over `BEFORE_SINGLE` and k alike.
    back:        [k] (c, w) over one token, after k such ones and a pass of so many before.
    cold_widths: (v,) some of the widths, ascending, beginning with 1.
    cold:        [k] (c, v) what is added after a pause and k passes.
    """

    contexts: npt.NDArray[np.float64]
    widths: npt.NDArray[np.float64]
    settled: Sequence[npt.NDArray[np.float64]]
    back: Sequence[npt.NDArray[np.float64]]
    cold_widths: npt.NDArray[np.float64]
    cold: Sequence[npt.NDArray[np.float64]]

    def ms(self, widths: Sequence[int], n_context: int) -> float:
        """Time of the passes of a generation, the first of which follows so many tokens, a pause
        and, like as not, a pass of another width."""
        total, before, n_alike, wide = 0.0, 0, 0, BEFORE_SINGLE
        for k, width in enumerate(widths):
            n_alike = min(n_alike + 1, N_SETTLING) if width == before else 0
            if width > 1 or n_alike == N_SETTLING:
                total += self._at(self.widths, self.settled[n_alike], width, n_context)
            else:
                total += self._at(self.widths, self.back[n_alike], wide, n_context)
            if k < len(self.cold):
                total += self._at(self.cold_widths, self.cold[k], width, n_context)
            before, wide = width, width if width > 1 else wide
        return total

    def predicted_ms(self, runs: Sequence[Run]) -> float:
        """Predicted time of all runs together."""
        return sum(self.ms(run.widths, run.n_context) + run.own_ms for run in runs)

    def _at(
        self,
        widths: npt.NDArray[np.float64],
        costs: npt.NDArray[np.float64],
        width: int,
        n_context: int,
    ) -> float:
        at = [float(_line(width, widths, row)) for row in costs]
        return max(float(_line(n_context, self.contexts, np.array(at))), 0.0)


def _line(x: float, xs: npt.NDArray[np.float64], ys: npt.NDArray[np.float64]) -> np.float64 | float:
    """Linear between points; beyond them the outermost slope goes on."""
    if len(xs) == 1:
        return ys[0]
    i = int(np.clip(np.searchsorted(xs, x) - 1, 0, len(xs) - 2))
    return ys[i] + (x - xs[i]) * (ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i])


class PassTimer:
    """Times passes over random tokens, a round of all widths at a time.

    Rounds are to be spread over what is predicted, since a machine's speed drifts, and not that of
    all widths alike. A round takes a second on the smallest models; passes of all rounds together
    take hardly more than `budget_s`.
    """

    def __init__(
        self,
        target: Target,
        contexts: Sequence[int] = CONTEXTS,
        budget_s: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._sleep = sleep
        self._budget_s = budget_s
        self._spent_s = self._turn_s = 0.0
        rng = np.random.default_rng(0)
        self._contexts = sorted({max(1, min(n, target.info.n_ctx // 2)) for n in contexts})
        self._widths = [n for n in WIDTHS if n - 1 <= target.can.max_draft]
        self._passes = [_Passes(target, _random(rng, target, n + 1)) for n in self._contexts]
        self._drafts = {
            n: Draft.chain(_random(rng, target, n - 1)) if n > 1 else NO_DRAFT for n in self._widths
        }
        self._times: dict[tuple[int, int, int], list[float]] = {}
        self._back_times: dict[tuple[int, int, int], list[float]] = {}
        self._cold_widths = [n for n in COLD_WIDTHS if n in self._widths]
        self._cold_times: dict[tuple[int, int, int], list[float]] = {}
        self._n_cold: int | None = None

    def round(self, done: float) -> None:
        """To be called between the requests, this share of which is done; the first call always
        times."""
        if self._spent_s > self._budget_s * done:
            return
        for i in range(len(self._contexts)):
            self._passes[i].ms(NO_DRAFT)  # reads the context
            self._warm_up(i)
            singles = [self._time(i, 1) for _ in range(N_SINGLE)]
            self._times.setdefault((i, 1, N_SETTLING), []).extend(singles)
            if self._n_cold is None:
                self._n_cold = min(N_COLD, int(COLD_MS / statistics.median(singles)))
            self._time_cold(i, self._n_cold)
            for n in self._widths[1:]:
                if self._turn_s > PAUSE_S:
                    self._pause()
                    if self._n_cold:
                        self._warm_up(i)
                for n_alike in range(1 + N_SETTLING):
                    self._times.setdefault((i, n, n_alike), []).append(self._time(i, n))
                for n_alike in range(N_SETTLING):
                    self._back_times.setdefault((i, n, n_alike), []).append(self._time(i, 1))

    def _time_cold(self, i: int, n_passes: int) -> None:
        if not n_passes:
            return
        for n in self._cold_widths:
            # Of another width, as what the first is compared with comes after.
            self._time(i, min(BEFORE_SINGLE, self._widths[-1]) if n == 1 else 1)
            self._pause()
            for k in range(n_passes):
                self._cold_times.setdefault((i, n, k), []).append(self._time(i, n))
        self._warm_up(i)

    def _warm_up(self, i: int) -> None:
        """Until passes over one token take no longer for what came before."""
        n, ms = 0, 0.0
        while n < N_FELT or ms < COLD_MS:
            n, ms = n + 1, ms + self._time(i, 1)

    def _pause(self) -> None:
        self._sleep(PAUSE_S)
        self._turn_s = 0.0

    def _time(self, i: int, n: int) -> float:
        ms = self._passes[i].ms(self._drafts[n])
        self._spent_s += ms / 1e3
        self._turn_s += ms / 1e3
        return ms

    def costs(self) -> TimedPasses:
        """Medians of all rounds, at least one: what they are compared with are medians, too, which
        leave out the time that others had."""
        settled = [self._table(self._times, k) for k in range(1 + N_SETTLING)]
        back = [self._table(self._back_times, k) for k in range(N_SETTLING)]
        before = self._widths.index(min(BEFORE_SINGLE, self._widths[-1]))
        for table, single in zip(settled, back, strict=False):
            table[:, 0] = single[:, before]
        return TimedPasses(
            np.array(self._contexts, np.float64),
            np.array(self._widths, np.float64),
            settled,
            back,
            np.array(self._cold_widths, np.float64),
            [self._added(k, settled[min(k, N_SETTLING)]) for k in range(self._n_cold or 0)],
        )

    def _added(self, k: int, settled: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        known, at = self._cold_times, self._widths.index
        rows = [
            [statistics.median(known[i, n, k]) - row[at(n)] for n in self._cold_widths]
            for i, row in enumerate(settled)
        ]
        return np.array(rows)

    def _table(
        self, times: Mapping[tuple[int, int, int], Sequence[float]], n_alike: int
    ) -> npt.NDArray[np.float64]:
        # After a pass over one token, one more is settled.
        rows = [
            [
                statistics.median(times.get((i, n, n_alike)) or self._times[i, 1, N_SETTLING])
                for n in self._widths
            ]
            for i in range(len(self._contexts))
        ]
        return np.array(rows)


class _Passes:
    """Passes behind one context, each as the loop makes it: decode, accept, keep."""

    def __init__(self, target: Target, context: Tokens) -> None:
        self._target = target
        self._context = context
        self._sampler = Sampler(SamplingParams())

    def ms(self, draft: Draft) -> float:
        target, context = self._target, self._context
        target.prefill(context, lambda: False)
        tail = context[target.n_cached :]
        if len(tail) > 1:
            target.decode(tail[:-1], NO_DRAFT)
            target.keep([])
            tail = tail[-1:]
        busy_s = target.busy_s
        rows = target.decode(tail, draft)
        target.keep(accept(draft, rows, self._sampler, [], target.info.eog).path)
        return (target.busy_s - busy_s) * 1e3


def _random(rng: np.random.Generator, target: Target, n: int) -> Tokens:
    return rng.integers(0, target.info.n_vocab, n).astype(np.int32)
