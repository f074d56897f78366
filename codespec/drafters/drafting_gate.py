"""A gate that switches drafting off for some passes where proposals do not pay for themselves.

A proposal by lookup takes some ten microseconds: nothing beside a pass of a large target, a tenth
of one of the smallest. Where proposals cost that much and are hardly ever accepted, the gate shuts
for most passes, so that text the workspace has never seen is decoded as fast as without drafting.

One proposal in four saves a pass or several, the others none, so the mean is known only after many:
the gate shuts only where the mean saving is below the cost by half of its standard error. What is
near the border crosses it often, so a pause shrinks as slowly as it grew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from codespec.cost.cost_curve import CostCurve

# The gate never shuts for proposals that take less than this share of a pass.
_NEGLIGIBLE = 0.02
# Weight of a proposal in the averages. One that took much longer than usual was interrupted.
_WEIGHT = 0.02
_OUTLIER = 4.0
# Proposals before the gate first shuts, and the margin in standard errors of the mean saving.
_FEWEST = 10
_MARGIN = 0.5
# Most passes of a pause, which doubles each time, and consecutive proposals of the trial after it:
# the first proposal of a request takes as long as some passes.
_MOST = 255
_TRIAL = 8


class DraftingGate:
    """Learns what proposals cost and save. One thread only.

    curve: cost of the target's passes, in milliseconds.
    """

    def __init__(self, curve: CostCurve) -> None:
        self._curve = curve
        self._cost_ms = self._gain_ms = self._variance = 0.0
        self._n_asked = 0
        self._pause = self._n_left = self._n_tried = 0

    @property
    def is_open(self) -> bool:
        """True if the next call of `admits` returns True."""
        return self._n_left == 0

    @property
    def n_rest(self) -> int:
        """Number of passes from now on without a proposal."""
        return self._n_left

    def rested(self, n_passes: int) -> None:
        """Count `n_passes` passes that were made without a call of `admits`."""
        self._n_left = max(0, self._n_left - n_passes)

    def admits(self) -> bool:
        """True if drafters are to be asked before the next pass. Called once a pass."""
        if self._n_left > 0:
            self.rested(1)
            return False
        return True

    def learn_all(
        self,
        took_ms: Iterable[float],
        n_drafted: Iterable[int],
        n_accepted: Iterable[int],
        width: int = 1,
    ) -> None:
        """Count several proposals, in order; see `learn`."""
        plain_ms = self._curve.pass_ms(1, width)
        for ms, drafted, accepted in zip(took_ms, n_drafted, n_accepted, strict=True):
            wide_ms = self._curve.pass_ms(1 + drafted, width) if drafted else plain_ms
            self._learn(ms, (1 + accepted) * plain_ms - wide_ms, plain_ms)

    def learn(self, took_ms: float, n_drafted: int, n_accepted: int, width: int = 1) -> None:
        """Count a proposal: time saved against plain decoding, or lost on a wider pass.

        took_ms: time of the proposal. n_drafted, n_accepted: tokens of it. width: see `PassState`.
        """
        self.learn_all((took_ms,), (n_drafted,), (n_accepted,), width)

    def _learn(self, took_ms: float, gain_ms: float, plain_ms: float) -> None:
        # The very first one opens an index, which may take as long as hundreds of passes.
        usual_ms = self._cost_ms if self._n_asked else plain_ms
        took_ms = min(took_ms, _OUTLIER * usual_ms)
        # A mean at first, so that the first proposal does not count for more than others.
        self._n_asked += 1
        weight = max(_WEIGHT, 1.0 / self._n_asked)
        self._cost_ms += weight * (took_ms - self._cost_ms)
        surprise = gain_ms - self._gain_ms
        self._gain_ms += weight * surprise
        self._variance = (1 - weight) * (self._variance + weight * surprise**2)
        most_ms = self._gain_ms + _MARGIN * math.sqrt(self._variance / self._n_asked)
        if self._cost_ms < _NEGLIGIBLE * plain_ms or most_ms >= self._cost_ms:
            self._pause -= -(-self._pause // _TRIAL)
            self._n_tried = 0
            return
        self._n_tried += 1
        if self._n_asked >= _FEWEST and self._n_tried >= _TRIAL:
            self._n_tried = 0
            self._pause = self._n_left = min(2 * self._pause + 1, _MOST)
