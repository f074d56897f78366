"""Several passes in one call of native code, where nobody need be asked between them.

A pass of a small model takes a millisecond or two and leaves the processor's caches cold, so that
what Python does between two of them takes ten times as long as usual. Where only lookups draft, the
likeliest token is always taken and the output cannot end before the next line end, a pass is
followed by the next without it. What is emitted is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from codespec.drafters.chain import DraftChain
from codespec.native import ENDS_STRETCH, ENDS_TEXT, Drafting, Ends, Stretch, Vocabulary
from codespec.sampling import Sampler
from codespec.types import TargetModel

_MAX_MS = 50.0
"""After so long, what the passes took is looked at: another number of threads may be better."""


class StretchingTarget(TargetModel, Protocol):
    """A target that can decode greedily by itself."""

    def decode_stretch(
        self,
        drafting: Drafting | None,
        emitted: Sequence[int],
        last: int,
        ends: Ends,
        n_tokens: int,
        n_passes: int,
        n_draft: int,
        ms: float,
        interrupted: Callable[[], bool],
    ) -> Stretch:
        """As `decode` and `keep`, pass after pass, with the likeliest tokens.

        drafting: what is drafted from, after `emitted`; None: nothing is.
        last:     the committed token that is not cached yet, the only one.
        n_tokens, n_passes: emitted and done at most. n_draft: tokens of one pass. ms: no pass
        begins later.
        interrupted: whether to leave off, asked each ten milliseconds or before the next pass.

        Raises: ModelError, CancelledError, as `decode`.
        """
        ...


class Stretches:
    """The stretches of one target's outputs."""

    def __init__(
        self,
        target: StretchingTarget,
        vocabulary: Vocabulary,
        is_trying: Callable[[], bool] = lambda: False,
    ) -> None:
        """is_trying: whether what passes take is to be known soon."""
        self._target = target
        marks = np.zeros(target.info.n_vocab, np.uint8)
        marks[vocabulary.containing(b"\n")] = ENDS_STRETCH
        marks[list(target.info.eog)] = ENDS_TEXT
        self._ends = Ends(marks)
        self._is_trying = is_trying

    def run(
        self,
        chain: DraftChain,
        emitted: list[int],
        last: int,
        sampler: Sampler,
        n_tokens: int,
        n_draft: int,
        n_passes: int,
        ms: float,
        interrupted: Callable[[], bool],
    ) -> Stretch | None:
        """Up to `n_tokens` that follow, not further than the pass that ends a line; None where the
        next pass has to be made in another way.

        last: the token they follow: the last of `emitted`, or what stands before that. n_draft:
        most tokens drafted for a pass. n_passes: at most. ms: for all of them, roughly.
        interrupted: see `StretchingTarget`.
        """
        if not sampler.takes_likeliest(emitted):
            return None
        drafting, n_alone = chain.alone(n_draft)
        if not n_alone:
            return None
        limits = n_tokens, min(n_passes, n_alone), n_draft, min(ms, _MAX_MS)
        return self._target.decode_stretch(
            drafting, emitted, last, self._ends, *limits, lambda: interrupted() or self._is_trying()
        )
