"""What a pass over n tokens costs on this machine, and the width that pays best.

A pass is not free in n: on a CPU eight tokens cost two to five times as much as one, with steps
where kernels change. Drafting more than pays makes decoding slower than not drafting at all, so the
width is chosen by the curve T(n), measured (`measure.py`) and then refined by every real pass.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

N_TABLE = 128
"""Costs of passes of up to this many tokens are a table look-up."""
_WIDE, _FEW = 32, 9

N_SETTLING = 2
"""Passes of a new width that cost more than those that follow: CUDA records the launches of the
second and repeats them from the third on; llama.cpp makes its graph for the first."""

# How fast a pass moves the curve. Speed is common to all widths (a busy neighbour, a slow clock)
# and changes fast; shape is the machine's and the model's, and changes slowly if at all.
# All widths beyond one share what our own work and a busy cache add to them: it is known sooner.
_SPEED_WEIGHT = 0.1
_WIDE_WEIGHT = 0.03
_SHAPE_WEIGHT = 0.02
# Most of a surprise, in natural logarithms, that one pass may teach: a preempted pass is no news.
# The same for speed and shape: were they drawn to different middles of one skewed distribution,
# the shape of the commonest width would drift for ever.
_MAX_ERROR = 0.5
# What is left of a correction of the shape with each pass: the measurement counts, too.
_SHAPE_KEPT = 0.998
# The table is made again after so many passes, and where the context has another length by so much.
_REFRESH_EVERY = 16
_CONTEXT_STEP = 32
# How often a draft is followed by a pass over one token, roughly.
_GOES_BACK = 2 / 3


@dataclass(frozen=True, slots=True)
class ContextSlope:
    """Milliseconds that a token of context adds to a pass over n tokens: fixed + per_token * n."""

    fixed: float = 0.0
    per_token: float = 0.0


class CostCurve:
    """Milliseconds of a pass over n tokens, linear between points, that follows real passes.

    points:    n -> ms, as measured behind `n_context` tokens.
    slope:     how that grows with the context.
    back_ms:   what a pass over one token takes more when it follows a wider one: llama.cpp keeps
        its graph for passes of one width. Part of what a wider pass costs, as far as it is likely
        to come to that, and only once where one wide pass follows another (`is_back`).
    is_prior:  the points are a guess: the first real pass sets their scale.
    steady:    n -> ms of a pass over n tokens that follows others over as many, for the widths that
        passes may be filled up to (`filler.py`).

    Source of the refinement: least mean squares (Widrow and Hoff 1960) on the logarithm of the
    cost, with clipped errors (Huber 1964).
    """

    def __init__(
        self,
        points: dict[int, float],
        n_context: int = 0,
        slope: ContextSlope | None = None,
        back_ms: float = 0.0,
        *,
        is_prior: bool = False,
        steady: Mapping[int, float] | None = None,
    ) -> None:
        steady = dict(steady or {})
        times = [*points.values(), *steady.values()]
        is_sound = all(0 < ms < math.inf for ms in times) and 0 <= back_ms < math.inf
        if not points or min([*points, *steady]) < 1 or not is_sound:
            raise ValueError("a cost curve needs points (n >= 1, ms > 0) and back_ms >= 0")
        slope = slope or ContextSlope()
        self._state = _State(points, n_context, slope, back_ms, is_prior, steady)
        self.reads_again = False
        """See `TargetModel.reads_again`."""
        self.is_back = True
        """Whether the last pass was over one token: if it was, a wider one makes `back_ms` due."""
        self.n_tail = 1
        """Committed tokens that the next pass reads, the first of those it costs; more than one
        only where there is reading again, and where all of them are part of a filled pass."""

    @property
    def points(self) -> dict[int, float]:
        """The curve as it is known by now, free of what load the machine has just now."""
        s = self._state
        return dict(zip(s.n, s.refined_ms(), strict=True))

    @property
    def steady(self) -> dict[int, float]:
        """As `points`, of passes that follow others of their width."""
        s = self._state
        return {n: s.steady_ms(n) for n in s.steady}

    @property
    def width(self) -> int:
        """No pass is over fewer tokens: those it lacks are filled up. 1: no filling."""
        return self._state.width

    def set_width(self, n: int) -> None:
        """n: 1 or one of `steady`."""
        self._state.set_width(n)

    @property
    def tables(self) -> list[npt.NDArray[np.float64]]:
        """`table`, as it is with each width: 1 and those of `steady`, rising."""
        return [self._state.table_of(n) for n in (1, *sorted(self._state.steady))]

    @property
    def n_context(self) -> int:
        """How much context `points` were measured behind."""
        return self._state.n_context

    @property
    def slope(self) -> ContextSlope:
        return self._state.slope

    @property
    def back_ms(self) -> float:
        return self._state.back_ms

    @property
    def is_prior(self) -> bool:
        return self._state.is_prior

    @property
    def n_observed(self) -> int:
        """How many real passes the curve has seen."""
        return self._state.n_observed

    @property
    def table(self) -> npt.NDArray[np.float64]:
        """(N_TABLE,) milliseconds of passes over 1, 2, ... tokens after one over one, going back to
        the usual width included; do not write."""
        return self._state.table

    def ms(self, n: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Cost of passes over `n` tokens; beyond the table its last slope goes on."""
        return _extended(self._state.table, n)

    def pass_ms(self, n: int) -> float:
        """Cost of one pass over `n` tokens."""
        s = self._state
        return s.costs[n - 1] if n <= N_TABLE else float(self.ms(np.array([n]))[0])

    def first(self, n: int) -> npt.NDArray[np.float64]:
        """(n,) costs of passes that draft 0 to n - 1 tokens; do not write."""
        s = self._state
        return self._first(s.table if self.is_back else s.table_after_wide, n)

    def either_first(self, n: int) -> npt.NDArray[np.float64]:
        """(2, n) what `first` says after a wide pass, and after one over one token."""
        s = self._state
        return np.stack([self._first(s.table_after_wide, n), self._first(s.table, n)])

    def _first(self, table: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.float64]:
        start = self.n_tail - 1
        if start + n <= N_TABLE:
            return table[start : start + n]
        return _extended(table, start + np.arange(1, n + 1))

    @property
    def again_ms(self) -> float:
        """What a token that has to be read again costs, as part of a pass over others."""
        if not self.reads_again:
            return 0.0
        costs = self._state.costs
        return (costs[_FEW - 1] - costs[1]) / (_FEW - 2)

    def chain_ms(self, k: int, expected: float, whole: float) -> float:
        """Cost of a pass with a chain of `k` tokens, and of what is read again after it: all that
        it reads and what is accepted, unless everything is.

        expected: tokens accepted. whole: P(all are).
        """
        ms = float(self.first(1 + k)[k])
        if self.reads_again and k:
            n_again = self.n_tail * (1.0 - whole) + (expected - whole) - (k - 1) * whole
            ms += self.again_ms * n_again
        return ms

    def set_tail(self, n: int) -> None:
        """The next pass reads so many committed tokens."""
        is_part = self.reads_again or n <= self.width
        self.n_tail = max(1, n) if is_part else 1

    def quiet_ms(self, n: int) -> float:
        """Cost of a pass as measured, whatever the load is now: the yardstick for load."""
        return self._state.quiet_ms(n)

    def settled_ms(self, n: int, n_alike: int) -> float:
        """As `quiet_ms`, after `n_alike` passes over as many tokens."""
        s = self._state
        if n_alike >= N_SETTLING:
            return s.quiet_steady_ms(n) if n in s.steady else s.quiet_ms(n)
        n_back = N_SETTLING if s.steady else 1
        return s.quiet_ms(n) + (s.back_ms / n_back if n == 1 and n_alike < n_back else 0.0)

    @property
    def token_ms(self) -> float:
        """What one token more costs in a wide pass, as measured: a token of a prompt. From the
        widest apart: a slow model's widths are timed once each, and between two that are near
        each other noise may be all there is."""
        return max(0.0, self.quiet_ms(_WIDE) - self.quiet_ms(1)) / (_WIDE - 1)

    def set_context(self, n_context: int) -> None:
        """Passes from now on follow about this many tokens."""
        self._state.set_context(n_context)

    def observe(self, n: int, ms: float) -> None:
        """The next real pass, over `n` tokens, took `ms`. One over one token that follows a wider
        one teaches nothing."""
        if n >= 1 and 0 < ms < math.inf:
            self._state.observe(n, ms)

    def become(self, other: CostCurve) -> None:
        """Show and refine what `other` shows and refines from now on."""
        self._state = other._state


class _State:
    """Plain numbers: a pass is observed in a microsecond, where an array's items take ten."""

    def __init__(
        self,
        points: dict[int, float],
        n_context: int,
        slope: ContextSlope,
        back_ms: float,
        is_prior: bool,
        steady: dict[int, float],
    ) -> None:
        ordered = sorted(points.items())
        self.n = [n for n, _ in ordered]
        self.ms = [ms for _, ms in ordered]
        self.log_shape = [0.0] * len(ordered)
        self.log_speed = self.log_wide = 0.0
        self.n_context = n_context
        self.slope = slope
        self.back_ms = back_ms
        self.is_prior = is_prior
        self.steady = steady
        self.log_steady = dict.fromkeys(steady, 0.0)
        self.width = 1
        self.n_observed = 0
        self._n_before = 1
        self._n_alike = 1 + N_SETTLING  # passes of one width in a row
        self._knows_load = False  # from a plain pass since the last wide one
        self._at_context = n_context
        # Made when somebody asks: the curve of a model that is not in use is not worth the time.
        self._quiet: list[float] = []
        self._table = self._table_after_wide = np.empty(0)
        self._costs: list[float] = []
        self._is_stale = True

    @property
    def table(self) -> npt.NDArray[np.float64]:
        if self._is_stale:
            self._refresh()
        return self._table

    @property
    def table_after_wide(self) -> npt.NDArray[np.float64]:
        if self._is_stale:
            self._refresh()
        return self._table_after_wide

    @property
    def costs(self) -> list[float]:
        """The table's, for who wants one of them."""
        if self._is_stale:
            self._refresh()
        return self._costs

    def set_context(self, n_context: int) -> None:
        if abs(n_context - self._at_context) >= _CONTEXT_STEP:
            self._at_context = n_context
            self._is_stale = True

    def set_width(self, n: int) -> None:
        if n != 1 and n not in self.steady:
            raise ValueError(f"passes over {n} tokens in a row were not measured")
        self._is_stale = self._is_stale or n != self.width
        self.width = n

    def refined_ms(self) -> list[float]:
        known = zip(self.n, self.ms, self.log_shape, strict=True)
        return [ms * math.exp(x + (self.log_wide if n > 1 else 0.0)) for n, ms, x in known]

    def quiet_ms(self, n: int) -> float:
        quiet = self._quiet_table()
        if n <= N_TABLE:
            return quiet[n - 1]
        return quiet[-1] + (n - N_TABLE) * (quiet[-1] - quiet[-2])  # the rest of a prompt

    def observe(self, n: int, ms: float) -> None:
        n_before, self._n_before = self._n_before, n
        self._n_alike = self._n_alike + 1 if n == n_before else 1
        if n == self.width > 1:
            self._observe_steady(n, ms)
            return
        if n == 1 and self._n_alike <= (N_SETTLING if self.steady else 1):
            return  # what going back takes is part of the wider pass, `back_ms`
        error = self._surprise(ms, self.quiet_ms(n))
        i = bisect_right(self.n, n) - 1
        step = _SHAPE_WEIGHT * error
        shape = self.log_shape
        shape[max(i, 0)] *= _SHAPE_KEPT
        # In a run of wide passes, load and width cannot be told apart.
        if n > 1 and self._knows_load:
            self.log_wide = _SHAPE_KEPT * self.log_wide + _WIDE_WEIGHT * error
        self._knows_load = n == 1
        if i < 0 or i + 1 >= len(shape):
            shape[max(i, 0)] += step
        else:
            share = (n - self.n[i]) / (self.n[i + 1] - self.n[i])
            shape[i] += step * (1 - share)
            shape[i + 1] += step * share
        self._is_stale = self._is_stale or self.n_observed % _REFRESH_EVERY == 1

    def _surprise(self, ms: float, quiet_ms: float) -> float:
        """By how much a pass took more than it would now, in natural logarithms; the speed of the
        moment is a little nearer then."""
        error = math.log(ms / quiet_ms) - self.log_speed
        if self.is_prior and not self.n_observed:
            self.log_speed = error
            error = 0.0
        self.n_observed += 1
        error = max(-_MAX_ERROR, min(_MAX_ERROR, error))
        self.log_speed += _SPEED_WEIGHT * error
        return error

    def _observe_steady(self, n: int, ms: float) -> None:
        """Such a pass, where it is one: the first two of a width cost more."""
        if self._n_alike <= N_SETTLING:
            return
        error = self._surprise(ms, self.quiet_steady_ms(n))
        self.log_steady[n] = _SHAPE_KEPT * self.log_steady[n] + _SHAPE_WEIGHT * error
        self._is_stale = self._is_stale or self.n_observed % _REFRESH_EVERY == 1

    def steady_ms(self, n: int) -> float:
        return self.steady[n] * math.exp(self.log_steady[n])

    def quiet_steady_ms(self, n: int) -> float:
        ms = self.steady_ms(n)
        more = self._at_context - self.n_context
        return max(ms + more * (self.slope.fixed + self.slope.per_token * n), ms * 0.25)

    def table_of(self, width: int) -> npt.NDArray[np.float64]:
        """The table where passes are filled up to `width`."""
        quiet = np.array(self._quiet_table())
        if width == 1:
            quiet[1:] += _GOES_BACK * self.back_ms
        else:
            ms = self.quiet_steady_ms(width)
            # A wider one is followed by passes that are new again.
            quiet[width:] += N_SETTLING * max(0.0, quiet[width - 1] - ms)
            quiet[:width] = min(ms, quiet[width])
        return quiet * math.exp(self.log_speed)

    def _quiet_table(self) -> list[float]:
        if self._is_stale:
            self._refresh()
        return self._quiet

    def _refresh(self) -> None:
        n = np.arange(1, N_TABLE + 1)
        ms = _rising(self.refined_ms())
        table = np.interp(n, self.n, ms)
        if len(ms) > 1:
            rise = (ms[-1] - ms[-2]) / (self.n[-1] - self.n[-2])
            table += np.maximum(n - self.n[-1], 0) * rise
        more = self._at_context - self.n_context
        grown = table + more * (self.slope.fixed + self.slope.per_token * n)
        # Extrapolated to a much shorter context than measured, a line may promise too much.
        self._quiet = np.maximum.accumulate(np.maximum(grown, table * 0.25)).tolist()
        self._is_stale = False
        self._table = self.table_of(self.width)
        self._table_after_wide = self._table
        if self.width == 1:
            # Due already, and no more where another wide one follows. Costs matter beside one
            # another, so what is likely to be due in any case is left out of both.
            back_ms = self.back_ms * math.exp(self.log_speed)
            self._table_after_wide = self._table - _GOES_BACK * back_ms
            self._table_after_wide[0] += back_ms
        for table in (self._table, self._table_after_wide):
            table.flags.writeable = False
        self._costs = self._table.tolist()


def _extended(table: npt.NDArray[np.float64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    beyond = np.maximum(n - N_TABLE, 0) * (table[-1] - table[-2])
    return table[np.minimum(n, N_TABLE) - 1] + beyond


def _rising(values: list[float]) -> npt.NDArray[np.float64]:
    """The nearest values that never fall, by least squares: a pass over more tokens never costs
    less. Pool adjacent violators (Ayer et al. 1955)."""
    blocks: list[tuple[float, int]] = []  # mean, length
    for value in values:
        mean, n = value, 1
        while blocks and blocks[-1][0] > mean:
            other, m = blocks.pop()
            mean, n = (mean * n + other * m) / (n + m), n + m
        blocks.append((mean, n))
    return np.repeat([mean for mean, _ in blocks], [n for _, n in blocks])


FLAT = CostCurve({1: 1.0})
"""A pass costs the same at every width: drafts are never cut."""


def best_width(
    probs: Sequence[float],
    curve: CostCurve,
    draft_ms: float = 0.0,
    begin_ms: float = 0.0,
) -> tuple[int, float]:
    """(k, tokens per millisecond) that maximise (1 + sum of path probabilities) / cost.

    probs:    P(node accepted | parent accepted) along a chain.
    draft_ms: time to draft one token, where drafting is not free.
    begin_ms: time to draft at all.
    """
    costs = curve.first(len(probs) + 1).tolist()
    best, rate = 0, 1.0 / costs[0]
    expected = path = 1.0
    for k, prob in enumerate(probs, 1):
        path *= prob
        expected += path
        cost = curve.chain_ms(k, expected - 1.0, path) if curve.reads_again else costs[k]
        if (now := expected / (cost + begin_ms + draft_ms * k)) > rate:
            best, rate = k, now
    return best, rate
