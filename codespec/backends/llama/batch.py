"""The batch of a pass: tokens, their positions and sequence ids, and which logits are wanted.

A chain is in sequence 0. A tree takes one sequence id per leaf: a node belongs to the sequences of
the leaves below it, so that attention sees exactly its ancestors (tree attention: SpecInfer, Miao
et al. 2024). The unified KV cache stores each node once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from codespec.backends.llama.loader import lib
from codespec.native import Batch as Cells
from codespec.types import Draft, Tokens
from codespec.verify.tree import depths, leaf_sets

MAIN = 0
"""Sequence id of the committed tokens."""

MAX_LEAVES = 8


class Batch:
    """A `llama_batch` of at most `n_max` tokens, filled in place. To be closed.

    raw: the `llama_batch`, for `llama_decode`.
    """

    def __init__(self, n_max: int) -> None:
        self.raw = lib.llama_batch_init(n_max, 0, 1 + MAX_LEAVES)
        view = np.ctypeslib.as_array
        self._token: npt.NDArray[np.int32] = view(self.raw.token, (n_max,))
        self._pos: npt.NDArray[np.int32] = view(self.raw.pos, (n_max,))
        self._n_seq: npt.NDArray[np.int32] = view(self.raw.n_seq_id, (n_max,))
        self._want: npt.NDArray[np.int8] = view(self.raw.logits, (n_max,))
        self._cells = Cells(self._token, self._pos, self._want)
        self._n_in_tree = n_max  # tokens whose sequence ids may be others than MAIN
        self.all_in_main()

    def lay(self, tokens: Tokens, draft: Draft, start: int, *, want_last: bool) -> list[int]:
        """Fill in committed tokens from position `start` on, then the draft's nodes.

        want_last: True for logits after the last of `tokens` and after each node, else none.

        Returns: indices of a tree's leaves, the s-th in sequence 1 + s; [] for a chain.
        """
        n, k = len(tokens), len(draft)
        self.raw.n_tokens = n + k
        self._cells.lay(tokens, draft.tokens, start, want_last)
        self.all_in_main()
        if not k or draft.is_chain:
            return []
        leaves, below = leaf_sets(draft)
        assert len(leaves) <= MAX_LEAVES, "cut the tree with `tree.limit_leaves` first"
        self._pos[n : n + k] = np.asarray(depths(draft), np.int32) + (start + n - 1)
        self._n_in_tree = n + k
        for i in range(n):
            self._put(i, range(1 + len(leaves)))
        for node, leaves_below in enumerate(below):
            self._put(n + node, [1 + s for s in leaves_below])
        return leaves

    def lay_branches(self, branches: Sequence[int], tokens: Sequence[int], position: int) -> None:
        """Fill in a token of each branch, all at one position, with logits after each; branch s is
        sequence 1 + s."""
        n = self.raw.n_tokens = len(branches)
        self._token[:n] = tokens
        self._pos[:n] = position
        self._want[:n] = 1
        self.all_in_main()
        self._n_in_tree = n
        for i, branch in enumerate(branches):
            self._put(i, [1 + branch])

    def close(self) -> None:
        """Free the `llama_batch`."""
        lib.llama_batch_free(self.raw)

    def _put(self, i: int, sequences: Sequence[int]) -> None:
        self._n_seq[i] = len(sequences)
        for j, sequence in enumerate(sequences):
            self.raw.seq_id[i][j] = sequence

    def all_in_main(self) -> None:
        """Reset all sequence ids to MAIN, for passes over chains."""
        if self._n_in_tree:
            self._n_seq[: self._n_in_tree] = 1
            for i in range(self._n_in_tree):
                self.raw.seq_id[i][0] = MAIN
            self._n_in_tree = 0
