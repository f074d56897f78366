"""Drafters for tests: scripted, wrong, and hostile ones."""

from __future__ import annotations

import numpy as np

from codespec.backends.base import Target
from codespec.drafters.cost import CostCurve
from codespec.drafters.model import ModelDrafter
from codespec.drafters.small import SharedVocabulary
from codespec.types import Context, Draft, Source, Tokens, Verdict


def drafter_over(model: Target, *args, **kwargs) -> ModelDrafter:
    """Over a model of the target's vocabulary."""
    return ModelDrafter(SharedVocabulary(model), *args, **kwargs)


class ScriptedDrafter:
    """Proposes what `script` returns for the output so far; records what it is told."""

    name = "scripted"

    def __init__(self, script) -> None:
        self._script = script
        self.contexts: list[Context] = []
        self.observed: list[tuple[list[int], Draft, Verdict]] = []

    def begin(self, context: Context) -> None:
        self.contexts.append(context)

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        return self._script(emitted, n_max)

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        self.observed.append((emitted.tolist(), draft, verdict))


def tree(tokens, parents, probs=None) -> Draft:
    k = len(tokens)
    return Draft(
        np.asarray(tokens, np.int32),
        np.asarray(parents, np.int32),
        np.ones(k, np.float32) if probs is None else np.asarray(probs, np.float32),
        np.full(k, Source.OTHER, np.int8),
    )


class OracleDrafter(ScriptedDrafter):
    """Knows the plain output and drafts it, as a chain."""

    def __init__(self, plain: list[int]) -> None:
        super().__init__(lambda emitted, n: Draft.chain(plain[len(emitted) : len(emitted) + n]))


def draft_much(engine) -> None:
    """As if wide passes cost little: many drafts, and trees. Real passes will say otherwise."""
    engine.curve.become(CostCurve({1: 1.0, 33: 1.1}))
