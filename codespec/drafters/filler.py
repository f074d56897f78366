"""Passes of one width, filled up with tokens that nobody expects, where that is quicker.

A GPU waits for its launches in a pass over few tokens. CUDA records those of a pass and repeats
them as long as the width stays the same, so a draft, whose pass is wider than the one before, pays
for all of them again. Where every pass is as wide as the drafts usually are, none does, but passes
that draft nothing cost more. The width follows from what passes cost alone: to learn it from what
is drafted brings less than the changes of width cost.

Source: CUDA C++ Programming Guide, CUDA graphs.
"""

from __future__ import annotations

import numpy as np

from codespec.drafters.cost import CostCurve
from codespec.types import Draft, PassState

_USUAL = {1: 1.0, 2: 1.64, 3: 1.86, 4: 2.05, 5: 2.18, 6: 2.29, 8: 2.41, 16: 2.55}
"""Width -> tokens that passes of it bring where edits are written again, the mean of several
repositories; plain decoding for 1."""


def fill_width(curve: CostCurve) -> int:
    """Width that passes are filled up to: with the most tokens a millisecond of those that were
    measured in a row; 1 for no filling."""
    steady = curve.steady
    if not steady:
        return 1
    widths = list(_USUAL)
    rates = {1: 1.0 / curve.quiet_ms(1)} | {
        n: float(np.interp(n, widths, list(_USUAL.values()))) / ms for n, ms in steady.items()
    }
    return max(rates, key=lambda n: rates[n])


def filled(draft: Draft, state: PassState, n_room: int) -> Draft:
    """`draft` as its pass verifies it, which has room for `n_room` drafted tokens: what lacks to
    the pass's width is filled up with tokens that are never accepted."""
    n = state.width - state.n_tail
    if n <= len(draft) or n > n_room or not draft.is_chain:
        return draft
    tokens = np.zeros(n, np.int32)
    tokens[: len(draft)] = draft.tokens
    return Draft.chain(tokens)
