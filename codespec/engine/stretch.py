"""Several passes in one call of native code, where nobody need be asked between them.

A pass of a small model takes a millisecond or two and leaves the processor's caches cold, so that
what Python does between two of them takes ten times as long as usual. Where only lookups draft, the
likeliest token is always taken and the output cannot end before the next line end, a pass is
followed by the next without it. What is emitted is the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codespec.backends.base import Target
from codespec.drafters.chain import DraftChain
from codespec.engine.output import Output
from codespec.native import ENDS_STRETCH, ENDS_TEXT, Ends, Stretch, Vocabulary
from codespec.types import PassState

_MAX_MS = 50.0
"""After so long, what the passes took is looked at: another number of threads may be better."""


class Stretches:
    """The stretches of one target's outputs."""

    def __init__(
        self,
        target: Target,
        vocabulary: Vocabulary,
        is_trying: Callable[[], bool] = lambda: False,
    ) -> None:
        """is_trying: True while what passes take is to be known soon."""
        self._target = target
        marks = np.zeros(target.info.n_vocab, np.uint8)
        marks[vocabulary.containing(b"\n")] = ENDS_STRETCH
        marks[list(target.info.eog)] = ENDS_TEXT
        self._ends = Ends(marks)
        self._is_trying = is_trying

    def run(
        self,
        chain: DraftChain,
        state: PassState,
        output: Output,
        last: int,
        n_tokens: int,
        n_draft: int,
        ms: float,
        interrupted: Callable[[], bool],
    ) -> Stretch | None:
        """Up to `n_tokens` that follow, not further than the pass that ends a line; None where the
        next pass has to be made in another way.

        last: the committed token they follow. n_draft: most tokens drafted for a pass. ms: for all
        of them, roughly. interrupted: see `Target.decode_stretch`.
        """
        if not output.sampler.takes_likeliest(output.tokens):
            return None
        drafting, n_passes = chain.standing_in(state, n_draft)
        if not n_passes:
            return None
        n_passes = n_passes if output.limits.is_in_line() else 1
        limits = n_tokens, n_passes, n_draft, min(ms, _MAX_MS)
        return self._target.decode_stretch(
            drafting,
            output.tokens,
            last,
            self._ends,
            *limits,
            lambda: interrupted() or self._is_trying(),
        )
