"""Tokens that an output may begin with, where it has to begin with bytes of a half-typed word."""

from __future__ import annotations

from bisect import bisect_left

from codespec.types import Tokenizer

_MOST = 1024
"""Most tokens to choose among: servers have a limit."""


class Beginnings:
    """The tokens of a vocabulary, sorted by their bytes."""

    def __init__(self, tokenizer: Tokenizer, n_vocab: int) -> None:
        pieces = ((tokenizer.piece(token), token) for token in range(n_vocab))
        self._sorted = sorted(found for found in pieces if found[0])
        self._by_piece = dict(reversed(self._sorted))

    def fitting(self, held: bytes) -> tuple[int, ...]:
        """The tokens that are a beginning of `held`, and those that begin with it."""
        shorter = (self._by_piece.get(held[:n]) for n in range(1, len(held)))
        found = [token for token in shorter if token is not None]
        at = bisect_left(self._sorted, (held, -1))
        while at < len(self._sorted) and self._sorted[at][0].startswith(held):
            found.append(self._sorted[at][1])
            at += 1
        return tuple(found[:_MOST])
