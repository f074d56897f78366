"""The cost of a pass over n tokens on this machine, and the verification width that pays best.

A pass is not free in n: on a CPU eight tokens cost two to five times as much as one, with steps
where kernels change. Drafting more than pays makes decoding slower than not drafting at all, so the
width is chosen by the curve T(n), measured (`measure.py`) and then refined by every real pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from codespec.cost.refined import N_SETTLING, N_TABLE, RefinedCurve, extended
from codespec.types import ANY_PASS, PassState

_WIDE, _FEW = 32, 9
# Beyond what any machine takes, and so far from what numbers can hold that nothing overflows.
_LEAST_MS, _MOST_MS, _MOST_TOKENS = 1e-9, 1e9, 1 << 31


class CostCurve:
    """Milliseconds of a pass over n tokens, linear between points, that real passes refine.

    A curve has no state but what it learned: other things that a pass's cost depends on come as a
    `PassState`.

    points:    n -> milliseconds, n >= 1.
    back_ms:   extra milliseconds of a pass over one token after a wider one, as llama.cpp keeps its
        compute graph for passes of one width. It is charged to the wider pass by its likelihood,
        and once where one wide pass follows another (`PassState.after_single`).
    is_prior:  True if the points are a guess: the first real pass sets their scale.
    steady:    n -> milliseconds of a pass over n tokens after others over as many, for the widths
        that passes may be padded to (`padding.py`).
    rolls_back: see `backends.base.Capabilities`.

    Raises: ValueError for numbers out of range, as in a damaged file.
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
        """Share the other curve's state from now on, in both directions."""
        self._state = other._state

    def table_of(self, width: int) -> npt.NDArray[np.float64]:
        """`table` where passes are padded to `width`."""
        return self._state.table_of(width)

    @property
    def points(self) -> dict[int, float]:
        """n -> milliseconds, refined by real passes, without the machine's present load."""
        s = self._state
        return dict(zip(s.n, s.refined_ms(), strict=True))

    @property
    def steady(self) -> dict[int, float]:
        """`points` of passes that follow others of their width, see `steady` of the class."""
        s = self._state
        return {n: s.steady_ms(n) for n in s.steady}

    @property
    def back_ms(self) -> float:
        """See the class."""
        return self._state.back_ms

    @property
    def is_prior(self) -> bool:
        """See the class."""
        return self._state.is_prior

    @property
    def n_observed(self) -> int:
        """Number of real passes the curve learned from."""
        return self._state.n_observed

    @property
    def table(self) -> npt.NDArray[np.float64]:
        """(N_TABLE,) milliseconds of passes over 1, 2, ... tokens after a pass over one, the likely
        `back_ms` included; do not write."""
        return self._state.rows(1)[1]

    def ms(self, n: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Milliseconds of passes over `n` tokens, an array of any shape; beyond the table its last
        slope goes on."""
        return extended(self.table, n)

    def pass_ms(self, n: int, width: int = 1) -> float:
        """Milliseconds of a pass over `n` tokens, where passes are padded to `width`."""
        if n <= N_TABLE:
            return self._state.costs(width)[n - 1]
        return float(extended(self._state.rows(width)[1], np.array([n]))[0])

    def first(self, state: PassState, n: int) -> npt.NDArray[np.float64]:
        """(n,) milliseconds of the next pass with 0 to n - 1 drafted tokens; do not write."""
        return self.either_first(state, n)[int(state.after_single)]

    def either_first(self, state: PassState, n: int) -> npt.NDArray[np.float64]:
        """(2, n) milliseconds as of `first`, after a wide pass and after one over one token: the
        same array until costs change."""
        return self._state.part(state.width, self.n_tail(state) - 1, n)

    def n_tail(self, state: PassState) -> int:
        """Committed tokens that the pass's cost depends on: more than one only where tokens are
        recomputed after a rejection, or where all of them fit a padded pass."""
        return state.n_tail if not self.rolls_back or state.n_tail <= state.width else 1

    @property
    def again_ms(self) -> float:
        """Milliseconds to recompute a token after a rejection, as part of a pass over others; 0
        where the target rolls back."""
        if self.rolls_back:
            return 0.0
        costs = self._state.costs(1)
        return (costs[_FEW - 1] - costs[1]) / (_FEW - 2)

    def chain_ms(self, state: PassState, k: int, expected: float, whole: float) -> float:
        """Milliseconds of a pass that verifies a chain of `k` tokens. Where the target does not
        roll back, they include recomputing the pass's tokens and the accepted ones, unless all are.

        expected: expected number of accepted tokens. whole: P(all are accepted).
        """
        ms = float(self.first(state, 1 + k)[k])
        if not self.rolls_back and k:
            n_tail = self.n_tail(state)
            n_again = n_tail * (1.0 - whole) + (expected - whole) - (k - 1) * whole
            ms += self.again_ms * n_again
        return ms

    def quiet_ms(self, n: int) -> float:
        """Milliseconds of a pass over `n` tokens without the present load: the yardstick for it."""
        return self._state.quiet_ms(n)

    def settled_ms(self, n: int, n_alike: int) -> float:
        """`quiet_ms` after `n_alike` passes over as many tokens in a row."""
        s = self._state
        if n_alike >= N_SETTLING:
            return s.steady_ms(n) if n in s.steady else s.quiet_ms(n)
        n_back = N_SETTLING if s.steady else 1
        return s.quiet_ms(n) + (s.back_ms / n_back if n == 1 and n_alike < n_back else 0.0)

    @property
    def token_ms(self) -> float:
        """Milliseconds of one more token in a wide pass: of a token of prefill. Two widths far
        apart give it, as a slow model's widths are timed once each, with noise."""
        return max(0.0, self.quiet_ms(_WIDE) - self.quiet_ms(1)) / (_WIDE - 1)

    def observe(self, n: int, ms: float) -> None:
        """Learn from the next real pass, over `n` tokens in `ms` milliseconds. A pass over one
        token after a wider one teaches nothing."""
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
    """Choose how many tokens of a chain to verify.

    probs:    (n,) P(node accepted | parent accepted) along the chain.
    draft_ms: milliseconds to draft a token. begin_ms: milliseconds before the first one.

    Returns: the k in 0..n with the most expected tokens per millisecond, (1 + sum of path
    probabilities) / cost, and that rate. Source: Leviathan et al. 2023, section 3, for the optimal
    number of drafted tokens; here costs depend on the width, and probabilities on the token.
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
