"""Drafters for tests: scripted, wrong, and hostile ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from codespec.backends.base import Target
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.drafters.base import Drafter
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.draft_model import SameVocabularyModel
from codespec.drafters.drafting_gate import DraftingGate
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.model_drafter import ModelDrafter
from codespec.types import NO_DRAFT, Context, Draft, PassState, Source, Tokens, Verdict

if TYPE_CHECKING:
    from codespec.cost.tuner import Tuner
    from codespec.engine.local import LocalEngine

Script: TypeAlias = Callable[[Tokens, int], Draft]
"""The draft for an output so far, and the most nodes it may have."""


def combined(
    drafters: Sequence[Drafter],
    n_vocab: int,
    max_leaves: int = 1,
    curve: CostCurve = FLAT,
    gate: DraftingGate | None = None,
    pads: bool = False,
    policy: GuardPolicy = GuardPolicy.RAISE,
) -> CombinedDrafter:
    """A chain whose members may not fail; hostile ones need another policy."""
    return CombinedDrafter(drafters, n_vocab, max_leaves, curve, gate, pads, policy)


def model_drafter_of(chain: CombinedDrafter) -> ModelDrafter:
    """The only draft model of a chain."""
    members = [member._drafter for member in chain._members]
    (found,) = (drafter for drafter in members if isinstance(drafter, ModelDrafter))
    return found


def assume(tuner: Tuner, curve: CostCurve) -> None:
    """Passes cost this, whatever was known; real passes will say otherwise."""
    for known in tuner.curves.values():
        known.follow(CostCurve(curve.points, back_ms=curve.back_ms, steady=curve.steady))
        tuner.curve.follow(known)


def drafter_over(
    model: Target,
    curve: CostCurve = FLAT,
    draft_curve: CostCurve | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> ModelDrafter:
    """Over a model of the target's vocabulary."""
    return ModelDrafter(SameVocabularyModel(model), curve, draft_curve, clock)


class ScriptedDrafter(Drafter):
    """Proposes what `script` returns for the output so far; records what it is told."""

    name = "scripted"

    def __init__(self, script: Script = lambda emitted, n_max: NO_DRAFT) -> None:
        self._script = script
        self.contexts: list[Context] = []
        self.observed: list[tuple[list[int], Draft, Verdict]] = []

    def begin(self, context: Context) -> None:
        self.contexts.append(context)

    def propose(self, state: PassState, n_max: int) -> Draft:
        return self._script(state.emitted, n_max)

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
    """Let wide passes cost little: many drafts, and trees."""
    assume(engine.passes.tuner, CostCurve({1: 1.0, 33: 1.1}))
