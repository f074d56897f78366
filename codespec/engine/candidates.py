"""Further suggestions beside the best one: each begins with another token and goes on greedily, or
however the request samples."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from codespec.sampling import TokenMask


class OtherFirstToken:
    """`sampling.TokenMask` that keeps the output from beginning with a token in `taken`."""

    def __init__(self, taken: Collection[int], n_vocab: int, also: TokenMask | None) -> None:
        """`also`: a mask that holds, too."""
        self._taken = np.asarray(sorted(taken), np.int32)
        self._n_vocab = n_vocab
        self._also = also

    @property
    def is_empty(self) -> bool:
        """Nothing may come first any more."""
        ids = self.allowed(())
        return ids is not None and not len(ids)

    def allowed(self, emitted: Sequence[int]) -> npt.NDArray[np.int32] | None:
        ids = None if self._also is None else self._also.allowed(emitted)
        if emitted:
            return ids
        if ids is None:
            ids = np.arange(self._n_vocab, dtype=np.int32)
        return np.setdiff1d(ids, self._taken, assume_unique=True)
