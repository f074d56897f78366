"""Calibration of a draft model: its own probability of a token against the acceptance rate.

A draft that begins with a doubtful token is dropped, so a draft model with an acceptance rate of a
half pays if it knows when it is right. EAGLE-2 (Li et al. 2024) relies on the same calibration.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# The acceptance rate is learned apart for so many intervals of the draft model's probability.
_N_STEPS = 10
_PRIOR_WEIGHT = 8.0
# How often the first token of a draft falls in each interval, before any was seen.
_PRIOR_FIRST = (0.0, 2.0, 0.0, 2.0, 2.0, 0.0, 2.0, 2.0, 2.0, 4.0)
# Old counts decay soon: calibration differs from one part of a file to the next.
_DECAY = 0.985


class Confidence:
    """P(a greedily drafted token is accepted), from the draft model's own probability of it."""

    def __init__(self) -> None:
        middle = (np.arange(_N_STEPS) + 0.5) / _N_STEPS
        # The draft model is assumed to be calibrated before any verdict.
        self._accepted: list[float] = (middle * _PRIOR_WEIGHT).tolist()
        self._n = [_PRIOR_WEIGHT] * _N_STEPS
        self._first = np.array(_PRIOR_FIRST)

    def accepted(self, prob: float) -> float:
        """P(accepted) of a token with the draft model's probability `prob`, 0 to 1."""
        i = _step(prob)
        return self._accepted[i] / self._n[i]

    def learn(self, prob: float, was_accepted: bool) -> None:
        """Count the verdict on a token with the draft model's probability `prob`."""
        i = _step(prob)
        self._n[i] = self._n[i] * _DECAY + 1
        self._accepted[i] = self._accepted[i] * _DECAY + was_accepted

    def began(self, prob: float) -> None:
        """Count a draft whose first token has this probability."""
        self._first *= _DECAY
        self._first[_step(prob)] += 1

    def rate(
        self,
        usual: float,
        cost_ms: npt.NDArray[np.float64],
        draft_ms: float,
        begin_ms: float,
    ) -> float:
        """Expected tokens per millisecond of drafting where drafts with too doubtful a first token
        are dropped.

        usual:    P(accepted) of tokens after the first, 0 to 1.
        cost_ms:  (n,) milliseconds of target passes over 1, 2, ... tokens; at most n - 1 are
            drafted.
        draft_ms: milliseconds to draft a token. begin_ms: milliseconds before the first one.
        """
        n = len(cost_ms)
        first = np.array(self._accepted) / np.array(self._n)
        expected = 1 + first[:, None] * np.append(0.0, np.cumsum(usual ** np.arange(n - 1)))
        # A dropped draft still costs one drafted token.
        ms = cost_ms + begin_ms + draft_ms * np.maximum(np.arange(n), 1)
        best = (expected / ms).argmax(axis=1)
        tokens = expected[np.arange(_N_STEPS), best]
        return float(self._first @ tokens / (self._first @ ms[best]))


def _step(prob: float) -> int:
    return min(int(prob * _N_STEPS), _N_STEPS - 1)
