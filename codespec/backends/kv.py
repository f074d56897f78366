"""Bookkeeping of a KV cache: which tokens it holds, and what can be kept of them.

Pure data, so that the discipline is the same for every backend and testable without one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.native import common_prefix
from codespec.types import Tokens


class CachedTokens:
    """The committed tokens of one sequence whose keys and values are in the cache."""

    def __init__(self, n_ctx: int) -> None:
        self._tokens = np.zeros(n_ctx, np.int32)
        self._cells = self._tokens.data  # quicker for some tokens
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def tokens(self) -> Tokens:
        """(n,) read-only view."""
        return self._tokens[: self._n]

    def common_prefix(self, tokens: Tokens) -> int:
        """Length of the longest common prefix of the cache and `tokens`."""
        return common_prefix(self.tokens, tokens)

    def truncate(self, n: int) -> None:
        assert 0 <= n <= self._n
        self._n = n

    def append(self, tokens: Tokens) -> None:
        assert self._n + len(tokens) <= len(self._tokens), "the KV cache is full"
        self._tokens[self._n : self._n + len(tokens)] = tokens
        self._n += len(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """As `append`, for some."""
        assert self._n + len(tokens) <= len(self._tokens), "the KV cache is full"
        for token in tokens:
            self._cells[self._n] = token
            self._n += 1
