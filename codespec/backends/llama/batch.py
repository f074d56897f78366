"""What one pass reads: its tokens, their positions and sequences, and whose logits are wanted.

What is committed, and a draft after it, is in sequence 0; branches that go on from there side by
side have a sequence each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from codespec.backends.llama.loader import lib
from codespec.native import Batch as Cells
from codespec.types import Draft, Tokens

MAIN = 0
"""Sequence id of the committed tokens."""

MAX_BRANCHES = 8


class Batch:
    """llama.cpp's batch of at most `n_max` tokens, filled in place. Close it.

    raw: what `llama_decode` takes.
    """

    def __init__(self, n_max: int) -> None:
        self.raw = lib.llama_batch_init(n_max, 0, 1)
        view = np.ctypeslib.as_array
        self._token: npt.NDArray[np.int32] = view(self.raw.token, (n_max,))
        self._pos: npt.NDArray[np.int32] = view(self.raw.pos, (n_max,))
        self._want: npt.NDArray[np.int8] = view(self.raw.logits, (n_max,))
        self._cells = Cells(self._token, self._pos, self._want)
        view(self.raw.n_seq_id, (n_max,))[:] = 1
        self._n_elsewhere = n_max  # tokens that may name other sequences than MAIN
        self.all_in_main()

    def lay(self, tokens: Tokens, draft: Draft, start: int, *, want_last: bool) -> None:
        """Committed tokens from position `start` on, then a draft. want_last: the logits after the
        last of `tokens` and after each drafted one are wanted, else none."""
        self.raw.n_tokens = len(tokens) + len(draft)
        self._cells.lay(tokens, draft.tokens, start, want_last)
        self.all_in_main()

    def lay_branches(self, branches: Sequence[int], tokens: Sequence[int], position: int) -> None:
        """A token of each branch, all at one position; branch s is sequence 1 + s. All logits are
        wanted."""
        n = self.raw.n_tokens = len(branches)
        self._token[:n] = tokens
        self._pos[:n] = position
        self._want[:n] = 1
        self.all_in_main()
        self._n_elsewhere = n
        for i, branch in enumerate(branches):
            self.raw.seq_id[i][0] = 1 + branch

    def close(self) -> None:
        lib.llama_batch_free(self.raw)

    def all_in_main(self) -> None:
        """What is laid next names no other sequence."""
        for i in range(self._n_elsewhere):
            self.raw.seq_id[i][0] = MAIN
        self._n_elsewhere = 0
