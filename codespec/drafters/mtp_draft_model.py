"""A target's MTP head (multi-token prediction) as a draft model of the same vocabulary.

The head predicts the token after next from the target's hidden state of the token before last.
Where that state is not known, it cannot draft until the target's next pass.

Source: Gloeckle et al. 2024; DeepSeek-AI 2024 (DeepSeek-V3) for MTP layers that draft.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codespec.backends.base import MtpHead
from codespec.drafters.draft_model import OnPass, SameVocabularyModel, ignore_pass
from codespec.types import Logits, Tokens


class MtpDraftModel(SameVocabularyModel):
    """`DraftModel` over an MTP head."""

    def __init__(self, model: MtpHead, on_pass: OnPass = ignore_pass) -> None:
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
