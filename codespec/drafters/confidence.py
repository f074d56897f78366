"""The worth of a small model's own probabilities: it knows when it is likely to be right.

A draft that begins with a doubtful token is dropped, so a model that is right half of the time but
knows when is worth asking.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# P(accepted) by the small model's own probability of its token, learned in so many steps of that.
_N_STEPS = 10
_PRIOR_WEIGHT = 8.0
# How often first tokens are in each step, before any was seen.
_PRIOR_FIRST = (0.0, 2.0, 0.0, 2.0, 2.0, 0.0, 2.0, 2.0, 2.0, 4.0)
# What is known is soon forgotten: in another part of a file being sure means more, or less.
_DECAY = 0.985


class Confidence:
    """P(a greedy draft token is the target's) from the small model's own probability of it."""

    def __init__(self) -> None:
        middle = (np.arange(_N_STEPS) + 0.5) / _N_STEPS
        # What a model half as good as the target would be right about.
        self._accepted: list[float] = (middle * _PRIOR_WEIGHT).tolist()
        self._n = [_PRIOR_WEIGHT] * _N_STEPS
        self._first = np.array(_PRIOR_FIRST)

    def accepted(self, prob: float) -> float:
        i = _step(prob)
        return self._accepted[i] / self._n[i]

    def learn(self, prob: float, was_accepted: bool) -> None:
        i = _step(prob)
        self._n[i] = self._n[i] * _DECAY + 1
        self._accepted[i] = self._accepted[i] * _DECAY + was_accepted

    def began(self, prob: float) -> None:
        """A draft begins with a token of this probability."""
        self._first *= _DECAY
        self._first[_step(prob)] += 1

    def rate(
        self,
        usual: float,
        cost_ms: npt.NDArray[np.float64],
        draft_ms: float,
        begin_ms: float,
    ) -> float:
        """Expected tokens per millisecond where drafts are asked for and those dropped that begin
        too doubtful to pay: a model that is right now and then is of use if it knows when.

        usual:    P(accepted) of tokens after the first.
        cost_ms:  of the target's passes over 1, 2, ... tokens, one more than are drafted at most.
        draft_ms: of drafting a token, and begin_ms of beginning.
        """
        n = len(cost_ms)
        first = np.array(self._accepted) / np.array(self._n)
        expected = 1 + first[:, None] * np.append(0.0, np.cumsum(usual ** np.arange(n - 1)))
        # To drop a draft is to have drafted a token in vain.
        ms = cost_ms + begin_ms + draft_ms * np.maximum(np.arange(n), 1)
        best = (expected / ms).argmax(axis=1)
        tokens = expected[np.arange(_N_STEPS), best]
        return float(self._first @ tokens / (self._first @ ms[best]))


def _step(prob: float) -> int:
    return min(int(prob * _N_STEPS), _N_STEPS - 1)
