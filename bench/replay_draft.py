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
from codespec.types import Context, Tokenizer

N_CTX = 2048


class DraftModel:
    """Drafts for any vocabulary, on one thread. What its passes cost is measured first.

    target:   the vocabulary to draft for. curve: what passes cost there.
    drafter:  to be asked, see `begin`.
    spent_ms: what its passes cost since then.

    Raises: ModelError.
    """

    def __init__(self, path: Path, target: Tokenizer, curve: CostCurve) -> None:
        with ExitStack() as stack:
            loaded = stack.enter_context(closing(load_model(path)))
            model = stack.enter_context(closing(LlamaTarget(loaded, n_ctx=N_CTX, n_threads=1)))
            self._curve = measure(model)
            speaking = Translated(model, LlamaTokenizer(loaded), target, self._passed)
            self.drafter = ModelDrafter(speaking, curve, self._curve)
            self._stack = stack.pop_all()
        self.spent_ms = 0.0

    def begin(self, context: Context) -> None:
        """A new text, whose prompt is in its cache, as it is in the target's."""
        self.drafter.read_ahead(context, lambda: False)
        self.spent_ms = 0.0

    def _passed(self, n_tokens: int, _ms: float) -> None:
        self.spent_ms += float(self._curve.ms(np.array([n_tokens]))[0])

    def close(self) -> None:
        self._stack.close()
