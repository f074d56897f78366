"""Token healing: a cursor inside a word or an indentation is a cursor inside a token.

The model has hardly ever seen `ret` as a token of its own before `urn`, or four spaces before four
more. So when the text before the cursor ends in a word or in blanks, its last token is held back
from the prompt, and the output is restricted to tokens that spell the held-back bytes first. The
restriction is part of the next-token distribution: it applies with and without drafting alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from codespec.native import Vocabulary
from codespec.types import Tokenizer, Tokens


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    """The bytes of all tokens of a tokenizer, indexed."""
    return Vocabulary([tokenizer.piece(t) for t in range(tokenizer.n_vocab)])


class HealingMask:
    """`sampling.TokenMask` that makes the output start with `healed`."""

    def __init__(self, healed: bytes, vocabulary: Vocabulary, tokenizer: Tokenizer) -> None:
        self._healed = healed
        self._vocabulary = vocabulary
        self._tokenizer = tokenizer

    def allowed(self, emitted: Sequence[int]) -> npt.NDArray[np.int32] | None:
        n_missing = self._n_missing(emitted)
        if n_missing <= 0:
            return None
        ids = self._vocabulary.compatible(self._healed[-n_missing:])
        return ids if len(ids) else None

    def is_done(self, emitted: Sequence[int]) -> bool:
        return self._n_missing(emitted) <= 0

    def _n_missing(self, emitted: Sequence[int]) -> int:
        n_missing = len(self._healed)
        for token in emitted:
            if n_missing <= 0:
                break
            n_missing -= len(self._tokenizer.piece(token))
        return n_missing


def n_repeating(emitted: Sequence[int], healed: bytes, tokenizer: Tokenizer) -> int:
    """Number of an output's first tokens that only spell the held-back bytes."""
    n, n_missing = 0, len(healed)
    while n_missing > 0 and n < len(emitted):
        n_missing -= len(tokenizer.piece(emitted[n]))
        n += 1
    return n - (n_missing < 0)


def hold_back(left: Tokens, tokenizer: Tokenizer) -> tuple[Tokens, bytes]:
    """(tokens to prompt with, bytes held back): cuts the last token where it ends in a word or in
    blanks. After a line end or punctuation nothing is held back."""
    piece = tokenizer.piece(int(left[-1])) if len(left) else b""
    if not piece or not _may_go_on(piece[-1]):
        return left, b""
    return left[:-1], piece


def _may_go_on(byte: int) -> bool:
    return chr(byte) in "_ \t" or byte >= 0x80 or chr(byte).isalnum()
