"""Bookkeeping of a KV cache: the tokens it holds.

Pure data, the same for every backend and testable without one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.native import common_prefix
from codespec.types import Tokens


class CommittedTokens:
    """Tokens of one sequence, in one array that is never copied, so that a view costs the same at
    any length: the tokens in a KV cache, or a prompt and its output.

    n_most: capacity in tokens.
    """

    def __init__(self, n_most: int) -> None:
        self._tokens = np.zeros(n_most, np.int32)
        self._cells = self._tokens.data  # quicker for some tokens
        # What others get to see and may keep.
        self._readonly = self._tokens.view()
        self._readonly.flags.writeable = False
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def tokens(self) -> Tokens:
        """(n,) read-only view."""
        return self.since(0)

    def since(self, start: int) -> Tokens:
        """(n - start,) read-only view of all but the first `start` tokens."""
        return self._readonly[start : self._n]

    def common_prefix(self, tokens: Tokens) -> int:
        """Length of the longest common prefix with `tokens`."""
        return common_prefix(self.tokens, tokens)

    def truncate(self, n: int) -> None:
        """Keep the first `n` tokens, 0 to len(self)."""
        assert 0 <= n <= self._n
        self._n = n

    def append(self, tokens: Tokens) -> None:
        """Append an array of tokens, which must fit the capacity."""
        assert self._n + len(tokens) <= len(self._tokens), "there is no room"
        self._tokens[self._n : self._n + len(tokens)] = tokens
        self._n += len(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append a list of tokens: faster than `append` for a few."""
        assert self._n + len(tokens) <= len(self._tokens), "there is no room"
        for token in tokens:
            self._cells[self._n] = token
            self._n += 1
