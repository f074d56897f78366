"""Whether it pays to ask for drafts at all.

Looking up a draft takes some ten microseconds: nothing beside a pass of a large model, a tenth of
one of the smallest. Where that is much and next to nothing comes of it, most passes go without
asking, so that text the workspace has never seen is written as quickly as without drafting.

One asking in four saves a pass or several, the others nothing, so it takes many to know the mean:
asking is given up only where the mean is below the cost by half of the standard error that so many
have. What is near the border crosses it often, so a pause is unlearned as slowly as it is learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from codespec.drafters.cost import CostCurve

# Asking that takes less than this share of a pass is never given up.
_NEGLIGIBLE = 0.02
# Weight of an asking in the averages. One that took much longer than usual was interrupted.
_WEIGHT = 0.02
_OUTLIER = 4.0
# Askings before the first is left out, and the margin in standard errors of the mean gain.
_FEWEST = 10
_MARGIN = 0.5
# Most passes to go without asking, after ever longer times that it did not pay, and askings in a
# row of each trial after them: the first one of a request takes as long as some passes.
_MOST = 255
_TRIAL = 8


class Worth:
    """Learns what asking takes and brings. One thread only.

    curve: milliseconds of the target's passes.
    """

    def __init__(self, curve: CostCurve) -> None:
        self._curve = curve
        self._cost_ms = self._gain_ms = self._variance = 0.0
        self._n_asked = 0
        self._pause = self._n_left = self._n_tried = 0

    @property
    def is_asking(self) -> bool:
        """Whether `ask` will say yes."""
        return self._n_left == 0

    @property
    def n_rest(self) -> int:
        """Passes to come before which nobody is to be asked."""
        return self._n_left

    def rested(self, n_passes: int) -> None:
        self._n_left = max(0, self._n_left - n_passes)

    def ask(self) -> bool:
        """Whether to ask before the pass that comes."""
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
        """Count askings, in order; see `learn`."""
        plain_ms = self._curve.pass_ms(1, width)
        for ms, drafted, accepted in zip(took_ms, n_drafted, n_accepted, strict=True):
            wide_ms = self._curve.pass_ms(1 + drafted, width) if drafted else plain_ms
            self._learn(ms, (1 + accepted) * plain_ms - wide_ms, plain_ms)

    def learn(self, took_ms: float, n_drafted: int, n_accepted: int, width: int = 1) -> None:
        """Count an asking: time saved against plain decoding, or lost on a wider pass.
        width: see `PassState`."""
        self.learn_all((took_ms,), (n_drafted,), (n_accepted,), width)

    def _learn(self, took_ms: float, gain_ms: float, plain_ms: float) -> None:
        # The very first one opens an index, which may take as long as hundreds of passes.
        usual_ms = self._cost_ms if self._n_asked else plain_ms
        took_ms = min(took_ms, _OUTLIER * usual_ms)
        # A mean at first, so that the first asking does not count for more than others.
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
