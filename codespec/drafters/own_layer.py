"""A target that drafts for itself: one more of its layers predicts the token after next.

It speaks the target's tokens and follows its output as any draft model of that vocabulary. But it
goes on from what the target thought of the token before last, and where that is not known, it has
nothing to say until the target's next pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codespec.backends.base import DraftingLayer
from codespec.drafters.small import OnPass, SharedVocabulary, unheard
from codespec.types import Logits, Tokens


class OwnLayer(SharedVocabulary):
    """`SmallModel` over such a layer."""

    def __init__(self, model: DraftingLayer, on_pass: OnPass = unheard) -> None:
        super().__init__(model, on_pass)
        self._own = model

    def read(self, interrupted: Callable[[], bool]) -> None:
        if self._own.knows(self._prompt):
            super().read(interrupted)

    def catch_up(self, emitted: Tokens, interrupted: Callable[[], bool]) -> None:
        if self._own.knows(np.concatenate([self._prompt, emitted])):
            super().catch_up(emitted, interrupted)
        else:
            self._is_over = True

    def draw(self, n: int) -> tuple[list[int], list[Logits]]:
        return ([], []) if self._is_over else super().draw(n)
