"""Optional parts of drafting, each of which `codespec bench ablation` can leave out.

They cost lines, and a part that brings too little goes. Output never depends on them, only speed.
What is kept whatever it brings (the sources, learning, draft models, threads, rests) is not here.
"""

from __future__ import annotations

from dataclasses import dataclass

from codespec.cost.cost_curve import best_width
from codespec.drafters.base import Plan
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.model_drafter import ModelDrafter
from codespec.types import PassState, Tokens


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """The defaults are the product.

    trees:        drafts with branches.
    confidence:   a draft model's own probability of a token says how likely that is accepted;
        doubtful drafts are dropped.
    dearer_draft: of several draft models, the dearest that the target's cost allows is asked.
    filling:      on a GPU, all passes have one width.
    way_back:     the way back to passes over one token is due once for wide passes in a row.
    refinement:   real passes correct the measured cost curve.
    stretches:    passes in a row are made by native code.
    """

    trees: bool = True
    confidence: bool = True
    dearer_draft: bool = True
    filling: bool = True
    way_back: bool = True
    refinement: bool = True
    stretches: bool = True


PRODUCT = Mechanisms()


class AlwaysGoingBack(CombinedDrafter):
    """Without `way_back`."""

    def state(self, emitted: Tokens, n_tail: int, after_single: bool) -> PassState:
        return super().state(emitted, n_tail, True)


class NeverSure(ModelDrafter):
    """Without `confidence`."""

    def _plan(
        self, state: PassState, n_max: int, usual: float, token_ms: float, begin_ms: float = 0.0
    ) -> Plan:
        return Plan(*best_width([usual] * n_max, self._curve, state, token_ms, begin_ms))

    def _accepted(self, own: float) -> float:
        return self._rate
