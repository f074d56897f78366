"""Passes of one width, filled up with tokens that nobody expects, where that is quicker.

A GPU waits for its launches in a pass over few tokens. CUDA records those of a pass and repeats
them as long as the width stays the same, so a draft, whose pass is wider than the one before, pays
for all of them again. Where every pass is as wide as the drafts usually are, none does, but passes
that draft nothing cost more. Which is better depends on how much is drafted, so both are weighed:
each plan says what it would have brought with either.

Source: CUDA C++ Programming Guide, CUDA graphs.
"""

from __future__ import annotations

import numpy as np

from codespec.drafters.cost import CostCurve
from codespec.native import Planner
from codespec.types import Draft, PassState

# Weight of a pass in the averages, and passes that the guess before them counts for.
_WEIGHT = 1 / 256
_N_GUESSED = 24
# Tokens that edits bring with passes of so many, when nothing is known of them: the guess.
_USUAL = {1: 1.0, 2: 1.45, 3: 1.6, 4: 1.7, 5: 1.78, 6: 1.83, 8: 1.92, 16: 2.1}
# Passes that a choice holds for within a request, and what another has to be better by: it costs as
# much as some passes. A request begins with a new width in any case.
_FEWEST = 32
_MARGIN = 0.1


class Filler:
    """Chooses the width of a target's passes. One thread only.

    searches: True to learn from plans what widths bring, False to trust in what they usually bring.
    """

    def __init__(self, curve: CostCurve, searches: bool = True) -> None:
        self._curve = curve
        self._searches = searches
        self.width = 1
        """No pass is over fewer tokens, see `PassState`."""
        # By width: expected, and what it would take.
        self._tokens = self._ms = np.zeros(0)
        self._n_since = 0  # plans since the last choice
        self._is_watching = False

    def begin(self, is_drafting: bool) -> None:
        """A request starts. is_drafting: whether its first pass may have a draft."""
        if is_drafting:
            self._choose(0.0)
        else:
            self.width = 1

    def step(self, is_drafting: bool) -> None:
        """Before a pass, or some in a row."""
        if not is_drafting:
            self.width = 1
        elif self._n_since >= _FEWEST:
            self._choose(_MARGIN)

    def watch(self, planner: Planner) -> None:
        """This planner's plans are weighed from now on."""
        self.learn(planner)
        self._is_watching = self._searches and bool(self._curve.steady)
        if self._is_watching:
            planner.set_ways(np.ascontiguousarray(self._curve.tables))

    def learn(self, planner: Planner) -> None:
        """From what it planned since."""
        if not self._is_watching:
            return
        n_plans, tokens, ms = planner.compared()
        if not n_plans or len(tokens) != len(self._tokens):
            return
        kept = (1 - _WEIGHT) ** n_plans
        self._tokens = kept * self._tokens + tokens
        self._ms = kept * self._ms + ms
        self._n_since += n_plans

    def _choose(self, margin: float) -> None:
        curve = self._curve
        widths = [1, *sorted(curve.steady)]
        if len(widths) == 1:
            return
        if len(widths) != len(self._tokens):
            usual = np.interp(widths, list(_USUAL), list(_USUAL.values()))
            self._tokens = _N_GUESSED * usual
            self._ms = _N_GUESSED * np.array([table[0] for table in curve.tables])
        rates = self._tokens / self._ms
        best = int(rates.argmax())
        if rates[best] > (1 + margin) * rates[widths.index(self.width)]:
            self.width = widths[best]
            self._n_since = 0


def filled(draft: Draft, state: PassState, n_room: int) -> Draft:
    """`draft` as its pass verifies it, which has room for `n_room` drafted tokens: what lacks to
    the pass's width is filled up with tokens that are never accepted."""
    n = state.width - state.n_tail
    if n <= len(draft) or n > n_room or not draft.is_chain:
        return draft
    tokens = np.zeros(n, np.int32)
    tokens[: len(draft)] = draft.tokens
    return Draft.chain(tokens)
