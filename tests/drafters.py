"""Drafters for tests: scripted, wrong, and hostile ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from codespec.backends.base import Target
from codespec.drafters.cost import FLAT, CostCurve
from codespec.drafters.mechanisms import PRODUCT, Mechanisms
from codespec.drafters.model import ModelDrafter
from codespec.drafters.small import SharedVocabulary
from codespec.types import NO_DRAFT, Context, Draft, Source, Tokens, Verdict

if TYPE_CHECKING:
    from codespec.engine.local import LocalEngine

Script: TypeAlias = Callable[[Tokens, int], Draft]
"""What to propose: the output so far, the most nodes -> a draft."""


def drafter_over(
    model: Target,
    curve: CostCurve = FLAT,
    own_curve: CostCurve | None = None,
    clock: Callable[[], float] = time.perf_counter,
    mechanisms: Mechanisms = PRODUCT,
) -> ModelDrafter:
    """Over a model of the target's vocabulary."""
    return ModelDrafter(SharedVocabulary(model), curve, own_curve, clock, mechanisms)


class ScriptedDrafter:
    """Proposes what `script` returns for the output so far; records what it is told."""

    name = "scripted"

    def __init__(self, script: Script = lambda emitted, n_max: NO_DRAFT) -> None:
        self._script = script
        self.contexts: list[Context] = []
        self.observed: list[tuple[list[int], Draft, Verdict]] = []

    def begin(self, context: Context) -> None:
        self.contexts.append(context)

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        return self._script(emitted, n_max)

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        self.observed.append((emitted.tolist(), draft, verdict))


def tree(
    tokens: npt.ArrayLike, parents: npt.ArrayLike, probs: npt.ArrayLike | None = None
) -> Draft:
    ids = np.asarray(tokens, np.int32)
    k = len(ids)
    return Draft(
        ids,
        np.asarray(parents, np.int32),
        np.ones(k, np.float32) if probs is None else np.asarray(probs, np.float32),
        np.full(k, Source.OTHER, np.int8),
    )


class OracleDrafter(ScriptedDrafter):
    """Knows the plain output and drafts it, as a chain."""

    def __init__(self, plain: list[int]) -> None:
        super().__init__(lambda emitted, n: Draft.chain(plain[len(emitted) : len(emitted) + n]))


def draft_much(engine: LocalEngine) -> None:
    """As if wide passes cost little: many drafts, and trees. Real passes will say otherwise."""
    engine.curve.become(CostCurve({1: 1.0, 33: 1.1}))
