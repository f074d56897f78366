"""How likely a drafted token is to be accepted.

A table by source, match length and count ratio. It starts from frequencies measured on replayed
commits and learns from every verification of this process.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from codespec.types import Source, Tokens, Verdict

# Upper ends of the match-length buckets, and the prior P(accepted) of the first token in each,
# measured by replaying commits of three Python repositories against a suffix trie.
_LENGTH_ENDS = np.array([1, 2, 4, 8, 16, 32])
_PRIOR_DOCUMENT = np.array([0.22, 0.33, 0.54, 0.66, 0.80, 0.90, 0.97])
_PRIOR_REPOSITORY = np.array([0.14, 0.21, 0.30, 0.50, 0.71, 0.86, 0.96])
_RATIO_ENDS = np.array([0.3, 0.6, 0.9])
_RATIO_FACTOR = np.array([0.45, 0.7, 0.9, 1.05])

# The prior counts as much as this many observations.
_PRIOR_WEIGHT = 24.0
# Old observations fade: the table follows the file being edited.
_DECAY = 0.998


class AcceptanceTable:
    """P(token accepted | its predecessor accepted) for lookup drafts. Not thread-safe."""

    def __init__(self) -> None:
        shape = (len(Source), len(_LENGTH_ENDS) + 1, len(_RATIO_ENDS) + 1)
        self._prior = np.empty(shape)
        for source in Source:
            base = _PRIOR_REPOSITORY if source == Source.REPOSITORY else _PRIOR_DOCUMENT
            self._prior[source] = np.minimum(base[:, None] * _RATIO_FACTOR[None, :], 0.98)
        self._n = np.zeros(shape)
        self._n_accepted = np.zeros(shape)

    def probs(
        self,
        source: Source,
        match_lengths: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        totals: npt.NDArray[np.int32],
    ) -> npt.NDArray[np.float32]:
        """(k,) float32 for a proposal whose token i followed a match of match_lengths[i] tokens
        in counts[i] of totals[i] places."""
        cells = self._cells(match_lengths, counts, totals)
        prior = self._prior[source][cells]
        n = self._n[source][cells]
        p = (prior * _PRIOR_WEIGHT + self._n_accepted[source][cells]) / (_PRIOR_WEIGHT + n)
        return p.astype(np.float32)

    def learn(
        self,
        source: Source,
        match_lengths: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        totals: npt.NDArray[np.int32],
        n_accepted: int,
    ) -> None:
        """The first `n_accepted` tokens of a proposal were right; the next one, if any, not."""
        n_seen = min(n_accepted + 1, len(counts))
        lengths, ratios = self._cells(match_lengths[:n_seen], counts[:n_seen], totals[:n_seen])
        self._n[source] *= _DECAY
        self._n_accepted[source] *= _DECAY
        for i, (length, ratio) in enumerate(zip(lengths, ratios, strict=True)):
            self._n[source, length, ratio] += 1
            self._n_accepted[source, length, ratio] += i < n_accepted

    @staticmethod
    def _cells(
        match_lengths: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        totals: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        lengths = np.searchsorted(_LENGTH_ENDS, match_lengths)
        ratios = np.searchsorted(_RATIO_ENDS, counts / np.maximum(totals, 1))
        return lengths, ratios


def n_followed(tokens: Tokens, verdict: Verdict) -> int:
    """How many leading tokens of a chain the target agreed with, its bonus token included.

    Holds for a chain that was not the one verified, too: losers learn from the outcome.
    """
    n = 0
    for token, emitted in zip(tokens.tolist(), verdict.emitted, strict=False):
        if token != emitted:
            break
        n += 1
    return n
