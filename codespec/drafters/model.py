"""The small model as a drafter: where nothing in the workspace matches, it guesses.

It drafts only as deep as its recent hit rate and both cost curves make worth while, and often not
at all. Greedy requests get greedy drafts. Sampled requests get true samples with their
distributions, of a length fixed before the draw, for rejection sampling to verify.
"""

from __future__ import annotations

import numpy as np

from codespec.drafters.calibrate import n_followed
from codespec.drafters.cost import FLAT, CostCurve, best_width
from codespec.errors import ModelError
from codespec.sampling import Sampler
from codespec.types import (
    NO_DRAFT,
    CancelledError,
    Context,
    Draft,
    ModelInfo,
    Source,
    TargetModel,
    Tokens,
    Verdict,
)
from codespec.verify import propose

_START_RATE = 0.5
_RATE_WEIGHT = 0.05
# Without drafts there is nothing to learn from, so a drafter that has switched itself off tries
# again every so many passes.
_RETRY_EVERY = 32


class ModelDrafter:
    """`Drafter` over a second, smaller model with the same vocabulary and a KV cache of its own.

    curve, own_curve: milliseconds of the target's and of the small model's passes.
    """

    name = "model"

    def __init__(
        self, model: TargetModel, curve: CostCurve = FLAT, own_curve: CostCurve | None = None
    ) -> None:
        self._model = model
        self._curve = curve
        self._token_ms = own_curve.points[1] if own_curve else 0.0
        self._rate = _START_RATE
        self._n_idle = 0
        self._context: Context | None = None
        self._sampler: Sampler | None = None

    def begin(self, context: Context) -> None:
        self._context = context
        self._sampler = Sampler(context.sampling)

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        width, _ = self.plan(n_max)
        if width == 0 and n_max > 0:
            self._n_idle += 1
            if self._n_idle % _RETRY_EVERY == 0:
                width = 1
        if width == 0 or self._context is None or self._sampler is None:
            return NO_DRAFT
        tokens = np.concatenate([self._context.prompt, emitted])
        if len(tokens) + width >= self._model.info.n_ctx:
            return NO_DRAFT
        try:
            self._model.prefill(tokens, lambda: False)
        except CancelledError:  # pragma: no cover - nothing cancels here
            return NO_DRAFT
        tail = tokens[self._model.n_cached :]
        drafted: list[int] = []
        laws: list[np.ndarray[tuple[int], np.dtype[np.float32]]] = []
        history = emitted.tolist()
        for _ in range(width):
            rows = self._model.decode(tail, NO_DRAFT)
            if self._sampler.greedy:
                token = self._sampler.sample(rows, 0, history)
            else:
                law = self._sampler.distribution(rows.row(0), history).astype(np.float32)
                laws.append(law)
                token = propose(law, self._sampler, len(history))
            self._model.keep([])
            drafted.append(token)
            history.append(token)
            if token in self._model.info.eog and self._sampler.greedy:
                break
            tail = np.array([token], np.int32)
        probs = np.full(len(drafted), self._rate, np.float32)
        q = np.stack(laws) if laws else None
        return Draft.chain(drafted, Source.DRAFT_MODEL, probs, q)

    def plan(self, n_max: int) -> tuple[int, float]:
        """(how many tokens to draft, expected tokens per millisecond)."""
        probs = np.full(n_max, self._rate, np.float32)
        return best_width(probs, self._curve, self._token_ms)

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        if not len(draft) or draft.sources[0] != Source.DRAFT_MODEL:
            return
        n = len(verdict.path) if draft.q is not None else n_followed(draft.tokens, verdict)
        for i in range(min(n + 1, len(draft))):
            self._rate += _RATE_WEIGHT * ((i < n) - self._rate)


def check_pair(target: ModelInfo, draft: ModelInfo) -> None:
    """Raises: ModelError unless `draft` can draft for `target`."""
    if target.n_vocab != draft.n_vocab:
        raise ModelError(
            f"{draft.path}: its vocabulary has {draft.n_vocab} tokens, "
            f"that of the target {target.name} {target.n_vocab}",
            "A draft model must share the target's tokenizer; choose another or set "
            'model.draft = "".',
        )
    if target.tokenizer_hash != draft.tokenizer_hash:
        raise ModelError(
            f"{draft.path}: its tokens are not those of the target {target.name}",
            "A draft model must share the target's tokenizer; choose another or set "
            'model.draft = "".',
        )
