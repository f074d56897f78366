"""Native stretches: several passes in one call of native code.

A pass of a small model takes a millisecond or two and leaves the processor's caches cold, so that
what Python does between two of them takes ten times as long as usual. Where only lookups draft, the
likeliest token is always taken and the output cannot end before the next line end, a pass is
followed by the next without it. The same tokens are emitted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codespec.backends.base import Target
from codespec.drafters.combined import CombinedDrafter
from codespec.engine.output import Output
from codespec.native import ENDS_STRETCH, ENDS_TEXT, Ends, Stretch, Vocabulary
from codespec.types import PassState

_MAX_MS = 50.0
"""Longest stretch, milliseconds: after it the cost of the passes is evaluated, as another number of
threads may be better."""


class Stretches:
    """Native stretches of one target."""

    def __init__(
        self,
        target: Target,
        vocabulary: Vocabulary,
        is_trying: Callable[[], bool] = lambda: False,
    ) -> None:
        """is_trying: True while a number of threads is being tried."""
        self._target = target
        marks = np.zeros(target.info.n_vocab, np.uint8)
        marks[vocabulary.containing(b"\n")] = ENDS_STRETCH
        marks[list(target.info.eog)] = ENDS_TEXT
        self._ends = Ends(marks)
        self._is_trying = is_trying

    def run(
        self,
        drafter: CombinedDrafter,
        state: PassState,
        output: Output,
        last: int,
        n_tokens: int,
        n_draft: int,
        ms: float,
        interrupted: Callable[[], bool],
    ) -> Stretch | None:
        """Decode up to `n_tokens`, ending with the pass that ends a line. None where the next pass
        has to be a step.

        last:        the last committed token.
        n_draft:     most tokens drafted for a pass.
        ms:          approximate limit for the stretch, milliseconds.
        interrupted: see `Target.decode_stretch`.
        """
        if not output.sampler.takes_likeliest(output.tokens):
            return None
        drafting, n_passes = drafter.native_drafting(state, n_draft)
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
            output.log_probs is not None,
        )
