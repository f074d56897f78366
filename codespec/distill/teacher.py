"""A target as teacher: the head of its next-token distribution after each token, and its own
continuations.

A pass over many tokens whose logits all count is what verification of a draft is, so text is read
as a draft that is always accepted; nothing but `Target` is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codespec.backends.base import Target
from codespec.types import NO_DRAFT, Draft, Logits, LogitsRows, Tokens

N_TOP = 16
# Tokens further than this below the best hold less than e^-14 of its probability.
NEAR = 14.0


@dataclass(frozen=True, slots=True)
class Taught:
    """Tokens and the target's next-token distribution after each of them.

    tokens:   (n,) int32, prompt and continuation.
    n_prompt: how many of them are the prompt.
    ids:      (n, N_TOP) int32, the likeliest next tokens, best first; -1 where there are fewer.
    log_prob: (n, N_TOP) float16, natural logarithms of their probabilities; -inf where id is -1.
    """

    tokens: Tokens
    n_prompt: int
    ids: npt.NDArray[np.int32]
    log_prob: npt.NDArray[np.float16]


class Teacher:
    """One target, asked for next-token distributions. Cost: a pass a `max_draft` tokens of prompt
    and one for each token of continuation.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self.info = target.info

    def teach(
        self, prompt: Tokens, n_new: int, temperature: float, rng: np.random.Generator
    ) -> Taught:
        """Reads a prompt (at least one token, and n_new fewer than the context) and continues it by
        at most n_new tokens: greedily at temperature 0. Ends before the end of generation.
        """
        tops = _Tops()
        logits = self._read(prompt, tops)
        tokens = prompt.tolist()
        for _ in range(n_new):
            token = _draw(logits, temperature, rng)
            if token in self.info.eog:
                break
            tokens.append(token)
            rows = self._target.decode(np.array([token], np.int32), NO_DRAFT)
            tops.add(rows, 1)
            logits = rows.row(0)
            self._target.keep([])
        return Taught(np.array(tokens, np.int32), len(prompt), *tops.arrays())

    def _read(self, prompt: Tokens, tops: _Tops) -> Logits:
        """Logits after the prompt; the distributions after all its tokens are added to tops."""
        target = self._target
        # Empties the cache: nothing is shared with a prompt of one impossible predecessor.
        target.prefill(prompt[:1], lambda: False)
        at = 0
        logits: Logits = np.zeros(0, np.float32)
        while at < len(prompt):
            tail = prompt[at : at + 1 + target.can.max_draft]
            rows = target.decode(tail[:1], Draft.chain(tail[1:]))
            tops.add(rows, len(tail))
            logits = rows.row(len(tail) - 1).copy()
            target.keep(range(len(tail) - 1))
            at += len(tail)
        return logits


class _Tops:
    """The likeliest tokens after each token read, and their probabilities."""

    def __init__(self) -> None:
        self._ids: list[npt.NDArray[np.int32]] = []
        self._log_prob: list[npt.NDArray[np.float16]] = []

    def add(self, rows: LogitsRows, n: int) -> None:
        for i in range(n):
            ids, log_prob = top(rows.row(i))
            self._ids.append(ids)
            self._log_prob.append(log_prob)

    def arrays(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float16]]:
        return np.stack(self._ids), np.stack(self._log_prob)


def top(logits: Logits, k: int = N_TOP) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float16]]:
    """(ids (k,), natural logarithms of their probabilities (k,)) of the likeliest tokens of
    logits (n_vocab,). Cost: one exponential a token of the vocabulary.
    """
    high = float(logits.max())
    near = np.flatnonzero(logits > high - NEAR)
    if len(near) > k:
        near = near[np.argpartition(logits[near], -k)[-k:]]
    near = near[np.argsort(-logits[near], kind="stable")]
    total = high + math.log(float(np.exp(logits - high).sum(dtype=np.float64)))
    ids = np.full(k, -1, np.int32)
    log_prob = np.full(k, -np.inf, np.float16)
    ids[: len(near)] = near
    log_prob[: len(near)] = np.minimum(logits[near] - total, 0.0)
    return ids, log_prob


def _draw(logits: Logits, temperature: float, rng: np.random.Generator) -> int:
    if temperature == 0:
        return int(logits.argmax())
    # The maximum of logits with Gumbel noise is a draw from their softmax.
    return int((logits / temperature + rng.gumbel(size=len(logits))).argmax())
