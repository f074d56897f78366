"""From logits to the next-token distribution, and random numbers that depend on the position alone.

The chain is: grammar, penalties, temperature, top-k, top-p, min-p (Holtzman et al. 2020 for
top-p; Nguyen et al. 2024 for min-p). The penalty sees emitted tokens only. A byte mask can
restrict the first tokens to those that continue text held back from the prompt (token healing).

Randomness is a hash of (seed, position, stream), not a generator with state. Position is the
number of emitted tokens, so a draft that is rejected cannot shift what comes later: the same
seed gives the same output whatever was drafted, by construction, unless the request accepts any
seed and drafts are samples, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from codespec.types import Logits, LogitsRows, Probs, SamplingParams

_MASK64 = (1 << 64) - 1

DRAW = 0
"""Stream of draws from the target's distribution."""
ACCEPT = 1
"""Stream of the acceptance test in rejection sampling."""
RESIDUAL = 2
"""Stream of draws from the residual distribution after a rejection."""
PROPOSE = 3
"""Stream of a draft model's samples."""


def uniform(seed: int, position: int, stream: int) -> float:
    """A uniform number in [0, 1) that depends on its arguments alone.

    Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators" (the
    finaliser of SplitMix64, applied to each argument in turn).
    """
    z = 0
    for part in (seed, position, stream):
        z = (z + (part & _MASK64) + 0x9E3779B97F4A7C15) & _MASK64
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
        z ^= z >> 31
    return (z >> 11) * 2.0**-53


def draw(probs: Probs, u: float) -> int:
    """The token at quantile `u` of `probs` (n,), which sums to 1 up to rounding."""
    total = np.cumsum(probs)
    # Scaling u by the last sum keeps rounding from ever selecting past the end; `right` never
    # selects a token of probability zero.
    i = int(np.searchsorted(total, u * total[-1], side="right"))
    return min(i, int(np.flatnonzero(probs)[-1])) if i >= len(probs) else i


class TokenMask(Protocol):
    """Restricts the next token: a grammar, or bytes that token healing held back."""

    def allowed(self, emitted: Sequence[int]) -> npt.NDArray[np.int32] | None:
        """(n,) ids that may follow `emitted`, ascending; None: any may."""
        ...

    def is_done(self, emitted: Sequence[int]) -> bool:
        """True if the mask restricts nothing after `emitted`, however long the output gets."""
        ...


class LazyMask(TokenMask, Protocol):
    """A mask that can check one token more cheaply than list all allowed ones."""

    def permits(self, emitted: Sequence[int], token: int) -> bool:
        """True if `token` may follow `emitted`."""
        ...


_N_TRIED = 32
"""Number of likeliest tokens that a `LazyMask` checks one by one before it lists all."""


def likeliest(logits: Logits, n: int) -> list[int]:
    """At most `n` of the likeliest tokens by logits (n_vocab,), likeliest first, ties by id; a
    group of equal logits is returned whole or not at all."""
    n = min(n, len(logits) - 1)
    found = np.flatnonzero(logits > np.partition(logits, -n - 1)[-n - 1])
    return found[np.argsort(-logits[found], kind="stable")].tolist()


class Sampler:
    """Samples one request's tokens: logits and the output so far -> next token.

    Holds no random state; `emitted` is passed in by the caller and only read.

    params: temperature, top-k and the like. mask: restriction of the next token; None: none.
    """

    def __init__(self, params: SamplingParams, mask: TokenMask | None = None) -> None:
        self.params = params
        self.mask = mask
        self.greedy = params.temperature == 0
        self._plain_argmax = self.greedy and not params.has_penalty
        self._lazy = mask if self._plain_argmax and _is_lazy(mask) else None

    def takes_likeliest(self, emitted: Sequence[int]) -> bool:
        """True if the tokens after `emitted` are sampled by plain argmax, without mask and
        penalty."""
        return self._plain_argmax and (self.mask is None or self.mask.is_done(emitted))

    def sample(self, rows: LogitsRows, i: int, emitted: Sequence[int]) -> int:
        """Sample the token after `emitted` from row `i` of logits; argmax alone where that is
        enough."""
        if self._lazy is not None:
            token = rows.argmax(i)
            if self._lazy.permits(emitted, token):
                return token
            for token in likeliest(rows.row(i), _N_TRIED):
                if self._lazy.permits(emitted, token):
                    return token
        allowed = self.mask.allowed(emitted) if self.mask else None
        if self._plain_argmax and allowed is None:
            return rows.argmax(i)
        if self.greedy:
            return int(self._penalised(rows.row(i), emitted, allowed).argmax())
        probs = self.distribution(rows.row(i), emitted)
        return draw(probs, uniform(self.params.seed, len(emitted), DRAW))

    def distribution(self, logits: Logits, emitted: Sequence[int]) -> Probs:
        """Next-token distribution after `emitted`: (n_vocab,) float64, sums to 1."""
        allowed = self.mask.allowed(emitted) if self.mask else None
        x = self._penalised(logits, emitted, allowed)
        if self.greedy:
            one_hot = np.zeros(len(x))
            one_hot[int(x.argmax())] = 1.0
            return one_hot
        p = self.params
        # In this order the smallest temperatures tend to greedy, their limit, and not to inf - inf.
        x -= x.max()
        with np.errstate(over="ignore"):
            x /= p.temperature
        if 0 < p.top_k < len(x):
            kth = np.partition(x, -p.top_k)[-p.top_k]
            x[x < kth] = -np.inf
        probs = np.exp(x)
        probs /= probs.sum()
        if p.top_p < 1.0:
            # Stable order: equal probabilities keep their ids' order, so the cut is deterministic.
            order = np.argsort(-probs, kind="stable")
            before = np.cumsum(probs[order]) - probs[order]
            probs[order[before >= p.top_p]] = 0.0
        if p.min_p > 0.0:
            probs[probs < p.min_p * probs.max()] = 0.0
        return probs / probs.sum()

    def _penalised(
        self, logits: Logits, emitted: Sequence[int], allowed: npt.NDArray[np.int32] | None
    ) -> Probs:
        x = logits.astype(np.float64)
        if self.params.has_penalty and emitted:
            ids, n_times = np.unique(np.asarray(emitted, np.int64), return_counts=True)
            p, seen = self.params, x[ids]
            seen = np.where(seen > 0, seen / p.repetition_penalty, seen * p.repetition_penalty)
            x[ids] = seen - p.frequency_penalty * n_times - p.presence_penalty
        if allowed is not None:
            masked = np.full(len(x), -np.inf)
            masked[allowed] = x[allowed]
            x = masked
        return x


def _is_lazy(mask: TokenMask | None) -> TypeGuard[LazyMask]:
    # Equals `isinstance` with the protocol, in a hundredth of its time.
    return hasattr(mask, "permits")
