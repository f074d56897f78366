"""A draft model beside lookups, while the true text stands in for the target."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from codespec.backends.llama import LlamaTarget, LlamaTokenizer, load_model
from codespec.drafters.cost import CostCurve
from codespec.drafters.measure import measure
from codespec.drafters.model import ModelDrafter
from codespec.drafters.translated import Translated
from codespec.types import Tokenizer

N_CTX = 2048


class DraftModel:
    """Drafts for any vocabulary, on one thread. What its passes cost is measured first.

    spent_ms: what they cost since somebody set this to zero.

    Raises: ModelError.
    """

    def __init__(self, path: Path) -> None:
        with ExitStack() as stack:
            loaded = stack.enter_context(closing(load_model(path)))
            self._model = stack.enter_context(
                closing(LlamaTarget(loaded, n_ctx=N_CTX, n_threads=1))
            )
            self._tokenizer = LlamaTokenizer(loaded)
            self._curve = measure(self._model)
            self._stack = stack.pop_all()
        self.spent_ms = 0.0

    def drafter(self, target: Tokenizer, curve: CostCurve) -> ModelDrafter:
        """For a target whose passes cost what `curve` says."""
        speaking = Translated(self._model, self._tokenizer, target, self._passed)
        return ModelDrafter(speaking, curve, self._curve)

    def _passed(self, n_tokens: int, _ms: float) -> None:
        self.spent_ms += float(self._curve.ms(np.array([n_tokens]))[0])

    def close(self) -> None:
        self._stack.close()
