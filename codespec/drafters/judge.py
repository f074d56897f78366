"""What a small model's word is worth: about its own tokens, and as a second opinion on a draft.

Text found in the workspace is often right up to a name that is another one here. The small model
does not know the text, but it knows the place: one pass over the whole draft tells how likely it
takes each token to be. What both say together is right more often than either, so less is drafted
in vain and more where it is safe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Log-odds and margins beyond this are no surer.
_SURE = 8.0
# Weights of the pool at first: of 1, of the drafter's log-odds, of the margin.
_PRIOR = (0.5, 0.6, 0.5)
_RATE, _BIAS_RATE = 0.015, 0.05
# Share of what perfect knowledge would bring that the small model's opinion does: 0.3 to 0.7 are
# alike for cheap models, more is too much for dear ones.
_SHARE_HAD = 0.4

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


class Pool:
    """P(token accepted) from what its drafter expects and what the small model says.

    Their log-odds are added up with weights learned online: the logarithmic opinion pool (Genest
    and Zidek 1986) by logistic regression. The model's margin, of a token's logit over the largest
    other one, stands for its log-odds: no softmax over the vocabulary is needed.
    """

    def __init__(self) -> None:
        self._weights = list(_PRIOR)

    def accepted(self, prob: float, margin: float) -> float:
        """prob: expected by the drafter. margin: -inf where the small model has no opinion, as it
        does not know the token."""
        if margin == -math.inf:
            return prob
        terms = zip(self._weights, _terms(prob, margin), strict=True)
        return 1.0 / (1.0 + math.exp(-sum(w * x for w, x in terms)))

    def learn(self, prob: float, margin: float, was_accepted: bool) -> None:
        if margin == -math.inf:
            return
        error = was_accepted - self.accepted(prob, margin)
        for i, x in enumerate(_terms(prob, margin)):
            self._weights[i] += (_RATE if i else _BIAS_RATE) * error * x


def _terms(prob: float, margin: float) -> tuple[float, float, float]:
    odds = math.log(max(prob, 1e-4) / max(1.0 - prob, 1e-4))
    return 1.0, max(-_SURE, min(_SURE, odds)), max(-_SURE, min(_SURE, margin))


def worth_of_asking(
    probs: Sequence[float],
    cost_ms: npt.NDArray[np.float64],
    rate: float,
    other: float = -math.inf,
) -> float:
    """Milliseconds that an opinion on a chain may take at most.

    Who knew how much of the chain is right would draft just that. The mean gain over the best
    fixed length is the value of perfect information (Howard 1966); an opinion has a share of it.

    probs:   P(token accepted | the one before was) along the chain.
    cost_ms: of passes over 1, 2, ... tokens, longer than probs.
    rate:    tokens per millisecond, for which time could be had otherwise.
    other:   what the small model's own draft is expected to gain where the first token is wrong:
        tokens, less the time at that rate.
    """
    costs = cost_ms.tolist()
    known = 0.0
    blind = most = 1.0 - rate * costs[0]
    expected = path = 1.0
    for k, prob in enumerate(probs, 1):
        # Right so far, and wrong here.
        known += path * (1.0 - prob) * (max(most, other) if k == 1 else most)
        path *= prob
        expected += path
        blind = max(blind, expected - rate * costs[k])
        most = max(most, 1 + k - rate * costs[k])
    known += path * most
    return _SHARE_HAD * (known - blind) / rate
