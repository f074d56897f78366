"""The cost of a pass over n tokens on this machine, and the width that pays best.

A pass is not free in n: on a CPU eight tokens cost two to five times as much as one, with steps
where kernels change. Drafting more than pays makes decoding slower than not drafting at all, so the
width is chosen by the curve T(n), measured (`measure.py`) and then refined by every real pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from codespec.drafters.refined import N_SETTLING, N_TABLE, RefinedCurve, extended
from codespec.types import ANY_PASS, PassState

_WIDE, _FEW = 32, 9
# Beyond what any machine takes, and so far from what numbers can hold that nothing overflows.
_LEAST_MS, _MOST_MS, _MOST_TOKENS = 1e-9, 1e9, 1 << 31


class CostCurve:
    """Milliseconds of a pass over n tokens, linear between points, that follows real passes. It
    only learns: what a pass depends on beside its tokens comes as a `PassState`.

    points:    n -> ms.
    back_ms:   what a pass over one token takes more when it follows a wider one: llama.cpp keeps
        its graph for passes of one width. Part of what a wider pass costs, as far as it is likely
        to come to that, and only once where one wide pass follows another (`after_single`).
    is_prior:  the points are a guess: the first real pass sets their scale.
    steady:    n -> ms of a pass over n tokens that follows others over as many, for the widths that
        passes may be filled up to (`filler.py`).
    rolls_back: see `backends.base.Capabilities`.

    Raises: ValueError for what nobody measures, as a damaged file may have it.
    """

    def __init__(
        self,
        points: dict[int, float],
        back_ms: float = 0.0,
        *,
        is_prior: bool = False,
        steady: Mapping[int, float] | None = None,
        rolls_back: bool = True,
    ) -> None:
        steady = dict(steady or {})
        times = [*points.values(), *steady.values()]
        is_sound = (
            all(_LEAST_MS <= ms <= _MOST_MS for ms in times)
            and 0 <= back_ms <= _MOST_MS
            and all(1 <= n <= _MOST_TOKENS for n in points)
            and all(1 < n < N_TABLE for n in steady)
        )
        if not points or not is_sound:
            raise ValueError("a cost curve needs points (n >= 1, ms > 0) and back_ms >= 0")
        self._state = RefinedCurve(points, back_ms, is_prior, steady)
        self.rolls_back = rolls_back

    def follow(self, other: CostCurve) -> None:
        """Be the other curve from now on, and learn with it."""
        self._state = other._state

    def table_of(self, width: int) -> npt.NDArray[np.float64]:
        """`table` where passes are filled up to `width`."""
        return self._state.table_of(width)

    @property
    def points(self) -> dict[int, float]:
        """The curve as it is known by now, free of what load the machine has just now."""
        s = self._state
        return dict(zip(s.n, s.refined_ms(), strict=True))

    @property
    def steady(self) -> dict[int, float]:
        """`points` of passes that follow others of their width."""
        s = self._state
        return {n: s.steady_ms(n) for n in s.steady}

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
        return self._state.rows(1)[1]

    def ms(self, n: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Cost of passes over `n` tokens; beyond the table its last slope goes on."""
        return extended(self.table, n)

    def pass_ms(self, n: int, width: int = 1) -> float:
        """Cost of one pass over `n` tokens, where none is over fewer than `width`."""
        if n <= N_TABLE:
            return self._state.costs(width)[n - 1]
        return float(extended(self._state.rows(width)[1], np.array([n]))[0])

    def first(self, state: PassState, n: int) -> npt.NDArray[np.float64]:
        """(n,) costs of passes that draft 0 to n - 1 tokens; do not write."""
        return self.either_first(state, n)[int(state.after_single)]

    def either_first(self, state: PassState, n: int) -> npt.NDArray[np.float64]:
        """(2, n) costs as of `first` after a wide pass, and after one over one token: the same
        array until that changes."""
        return self._state.part(state.width, self.n_tail(state) - 1, n)

    def n_tail(self, state: PassState) -> int:
        """Committed tokens of the pass that its cost depends on: more than one only where there is
        reading again, or where all of them are part of a filled pass."""
        return state.n_tail if not self.rolls_back or state.n_tail <= state.width else 1

    @property
    def again_ms(self) -> float:
        """Cost of a token that has to be read again, as part of a pass over others."""
        if self.rolls_back:
            return 0.0
        costs = self._state.costs(1)
        return (costs[_FEW - 1] - costs[1]) / (_FEW - 2)

    def chain_ms(self, state: PassState, k: int, expected: float, whole: float) -> float:
        """Cost of a pass with a chain of `k` tokens, and of what is read again after it: all that
        it reads and what is accepted, unless everything is.

        expected: tokens accepted. whole: P(all are).
        """
        ms = float(self.first(state, 1 + k)[k])
        if not self.rolls_back and k:
            n_tail = self.n_tail(state)
            n_again = n_tail * (1.0 - whole) + (expected - whole) - (k - 1) * whole
            ms += self.again_ms * n_again
        return ms

    def quiet_ms(self, n: int) -> float:
        """Cost of a pass as measured, whatever the load is now: the yardstick for load."""
        return self._state.quiet_ms(n)

    def settled_ms(self, n: int, n_alike: int) -> float:
        """`quiet_ms` after `n_alike` passes over as many tokens."""
        s = self._state
        if n_alike >= N_SETTLING:
            return s.steady_ms(n) if n in s.steady else s.quiet_ms(n)
        n_back = N_SETTLING if s.steady else 1
        return s.quiet_ms(n) + (s.back_ms / n_back if n == 1 and n_alike < n_back else 0.0)

    @property
    def token_ms(self) -> float:
        """Cost of one token more in a wide pass, as measured: a token of a prompt. From the
        widest apart: a slow model's widths are timed once each, and between two that are near
        each other noise may be all there is."""
        return max(0.0, self.quiet_ms(_WIDE) - self.quiet_ms(1)) / (_WIDE - 1)

    def observe(self, n: int, ms: float) -> None:
        """The next real pass, over `n` tokens, took `ms`. One over one token that follows a wider
        one teaches nothing."""
        if n >= 1 and 0 < ms < math.inf:
            self._state.observe(n, ms)


FLAT = CostCurve({1: 1.0})
"""A pass costs the same at every width: drafts are never cut."""


def best_width(
    probs: Sequence[float],
    curve: CostCurve,
    state: PassState = ANY_PASS,
    draft_ms: float = 0.0,
    begin_ms: float = 0.0,
) -> tuple[int, float]:
    """(k, tokens per millisecond) that maximise (1 + sum of path probabilities) / cost.

    probs:    P(node accepted | parent accepted) along a chain.
    draft_ms: time to draft one token, where drafting is not free.
    begin_ms: time to draft at all.
    """
    costs = curve.first(state, len(probs) + 1).tolist()
    best, rate = 0, 1.0 / costs[0]
    expected = path = 1.0
    for k, prob in enumerate(probs, 1):
        path *= prob
        expected += path
        cost = costs[k] if curve.rolls_back else curve.chain_ms(state, k, expected - 1.0, path)
        if (now := expected / (cost + begin_ms + draft_ms * k)) > rate:
            best, rate = k, now
    return best, rate
