"""Several passes in one call of native code, where nobody need be asked between them.

A pass of a small model takes a millisecond or two and leaves the processor's caches cold, so that
what Python does between two of them takes ten times as long as usual. Where only lookups draft, the
likeliest token is always taken and the output cannot end before the next line end, a pass is
followed by the next without it. What is emitted is the same.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from codespec.drafters.chain import DraftChain
from codespec.native import ENDS_STRETCH, ENDS_TEXT, Drafting, Stretch, Vocabulary
from codespec.sampling import Sampler
from codespec.types import TargetModel, Tokens

_MAX_MS = 10.0
"""After so long, somebody may have changed their mind."""


class StretchingTarget(TargetModel, Protocol):
    """A target that can decode greedily by itself."""

    def decode_stretch(
        self,
        last: int,
        drafting: Drafting | None,
        ends: npt.NDArray[np.uint8],
        n_tokens: int,
        n_passes: int,
        n_draft: int,
        ms: float,
    ) -> Stretch:
        """As `decode` and `keep`, pass after pass, with the likeliest tokens.

        last:     the committed token that is not cached yet, the only one.
        drafting: what is drafted from; None: nothing is.
        ends:     (n_vocab,) ENDS_TEXT for tokens that nothing follows, ENDS_STRETCH for tokens with
            whose pass the stretch ends, 0 for others.
        n_tokens, n_passes: emitted and done at most. n_draft: tokens of one pass. ms: no pass
        begins later.

        Raises: ModelError, CancelledError, as `decode`.
        """
        ...


class Stretches:
    """The stretches of one target's outputs."""

    def __init__(self, target: StretchingTarget, vocabulary: Vocabulary) -> None:
        self._target = target
        ends = np.zeros(target.info.n_vocab, np.uint8)
        ends[vocabulary.containing(b"\n")] = ENDS_STRETCH
        ends[list(target.info.eog)] = ENDS_TEXT
        self._ends = ends

    def run(
        self,
        chain: DraftChain,
        last: int,
        emitted: Tokens,
        sampler: Sampler,
        n_tokens: int,
        n_draft: int,
        n_passes: int,
        ms: float,
    ) -> Stretch | None:
        """Up to `n_tokens` that follow, not further than the pass that ends a line; None where the
        next pass has to be made in another way.

        last: the token they follow: the last of `emitted`, or what stands before that. n_draft:
        most tokens drafted for a pass. n_passes: at most. ms: for all of them, roughly.
        """
        if not sampler.takes_likeliest(emitted.tolist()):
            return None
        drafting, n_alone = chain.alone(emitted, n_draft)
        if not n_alone:
            return None
        limits = n_tokens, min(n_passes, n_alone), n_draft, min(ms, _MAX_MS)
        return self._target.decode_stretch(last, drafting, self._ends, *limits)
