"""A draft model beside lookups, while the true text stands in for the target."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np

from codespec.backends.registry import open_model
from codespec.cost.cost_curve import CostCurve
from codespec.cost.measure import measure
from codespec.drafters.heterogeneous import HeterogeneousModel
from codespec.drafters.model_drafter import ModelDrafter
from codespec.engine.draft_models import dearest
from codespec.types import Context, Tokenizer

N_CTX = 2048


@contextmanager
def opened(
    paths: Sequence[Path], target: Tokenizer, curve: CostCurve
) -> Generator[ReplayDraftModel | None, None, None]:
    """The draft model of these files; None where no path is given."""
    if not paths:
        yield None
        return
    with closing(ReplayDraftModel(paths, target, curve)) as model:
        yield model


class ReplayDraftModel:
    """Drafts for any vocabulary, on one thread. What its passes cost is measured first.

    paths:    of several, in the order of `draft_paths`, that cost says which.
    target:   the vocabulary to draft for. curve: what passes cost there.
    name:     which it is. drafter: to be asked, see `begin`.
    spent_ms: what its passes cost since then.

    Raises: ModelError.
    """

    def __init__(self, paths: Sequence[Path], target: Tokenizer, curve: CostCurve) -> None:
        with ExitStack() as stack:
            loaded = [stack.enter_context(closing(open_model(path))) for path in paths]
            models = [
                stack.enter_context(closing(model.context(n_ctx=N_CTX, n_threads=1)))
                for model in loaded
            ]
            curves = [measure(model) for model in models]
            i = dearest(curve, curves)
            self.name, self._curve = loaded[i].info.name, curves[i]
            speaking = HeterogeneousModel(models[i], loaded[i].tokenizer, target, self._passed)
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
