"""How long decoding ought to take, from parts that were measured apart from it.

A pass costs what its number of tokens says, and that of the pass before: llama.cpp keeps its graph
for passes of one width and makes a new one for another, so a drafted pass and the plain one after
it both pay. To the passes comes our own work, drafting included, which passes of the smallest
models do not hide; it is taken from another run of the same request.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codespec.sampling import Sampler
from codespec.types import NO_DRAFT, Draft, SamplingParams, TargetModel, Tokens, Trace
from codespec.verify import accept

CONTEXTS = (128, 896)
"""Tokens of context; prompts of completions are about as long as one of these, or between."""

WIDTHS = (*range(1, 18), 24, 33)
"""Tokens of a pass. All small ones: where kernels change, a line between two others is wrong."""


@dataclass(frozen=True, slots=True)
class PassCosts:
    """Milliseconds of passes, sampling included.

    contexts: (c,) tokens in the cache before a pass, ascending.
    widths:   (w,) tokens of the pass, ascending, beginning with 1.
    same:     (c, w) after a pass of the same width.
    changed:  (c, w) after a pass of another one.
    """

    contexts: npt.NDArray[np.float64]
    widths: npt.NDArray[np.float64]
    same: npt.NDArray[np.float64]
    changed: npt.NDArray[np.float64]

    def ms(self, widths: Sequence[int], n_context: int) -> float:
        """Of the passes of a generation, the first of which follows so many tokens and, like as
        not, a pass of another width."""
        total, before = 0.0, 0
        for width in widths:
            total += self._at(self.same if width == before else self.changed, width, n_context)
            before = width
        return total

    def _at(self, costs: npt.NDArray[np.float64], width: int, n_context: int) -> float:
        n = len(self.widths)
        at = [float(_line(width, self.widths, costs[i, :n])) for i in range(len(self.contexts))]
        return max(float(_line(n_context, self.contexts, np.array(at))), 0.0)


def _line(x: float, xs: npt.NDArray[np.float64], ys: npt.NDArray[np.float64]) -> np.float64 | float:
    """Linear between points; beyond them the outermost slope goes on."""
    if len(xs) == 1:
        return ys[0]
    i = int(np.clip(np.searchsorted(xs, x) - 1, 0, len(xs) - 2))
    return ys[i] + (x - xs[i]) * (ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i])


def measure_passes(
    target: TargetModel,
    contexts: Sequence[int],
    n_repeats: int = 7,
    budget_s: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
) -> PassCosts:
    """Medians of `n_repeats` passes over random tokens; fewer where the time is up before.

    Takes about two seconds on the smallest models.
    """
    started = clock()
    rng = np.random.default_rng(0)
    chosen = sorted({max(1, min(n, target.info.n_ctx // 2)) for n in contexts})
    widths = [n for n in WIDTHS if n - 1 <= target.max_draft]
    passes = [_Passes(target, clock, _random(rng, target, n + 1)) for n in chosen]
    drafts = {n: Draft.chain(_random(rng, target, n - 1)) if n > 1 else NO_DRAFT for n in widths}
    times: dict[tuple[int, int, bool], list[float]] = {}
    for repeat in range(n_repeats):
        if repeat and clock() - started > budget_s:
            break
        for i, one in enumerate(passes):
            one.ms(NO_DRAFT)  # reads the context, where it was another
            for n in widths:
                one.ms(NO_DRAFT)
                if n > 1:
                    times.setdefault((i, n, False), []).append(one.ms(drafts[n]))
                times.setdefault((i, n, True), []).append(one.ms(drafts[n]))
                if n > 1:
                    times.setdefault((i, 1, False), []).append(one.ms(NO_DRAFT))

    def table(same: bool) -> npt.NDArray[np.float64]:
        # A target that takes no drafts has passes of one width alone.
        rows = [
            [statistics.median(times.get((i, n, same)) or times[i, n, True]) for n in widths]
            for i in range(len(chosen))
        ]
        return np.array(rows)

    return PassCosts(
        np.array(chosen, np.float64), np.array(widths, np.float64), table(True), table(False)
    )


class _Passes:
    """Passes behind one context, each as the loop makes it: decode, accept, keep."""

    def __init__(self, target: TargetModel, clock: Callable[[], float], context: Tokens) -> None:
        self._target = target
        self._clock = clock
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
        started = self._clock()
        rows = target.decode(tail, draft)
        target.keep(accept(draft, rows, self._sampler, [], target.info.eog).path)
        return (self._clock() - started) * 1e3


def _random(rng: np.random.Generator, target: TargetModel, n: int) -> Tokens:
    return rng.integers(0, target.info.n_vocab, n).astype(np.int32)


def own_ms(trace: Trace) -> float:
    """Of a run's time, what is not in passes of the target: drafting, the draft model's passes, the
    loop, and whatever else `Trace.ms` covers."""
    return max(trace.ms - trace.target_ms, 0.0)
