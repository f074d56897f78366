"""Padding: passes of one width, filled with tokens that are never accepted, where that is faster.

In a pass over few tokens a GPU waits for kernel launches. CUDA graphs record a pass's launches and
replay them as long as the width stays the same, so a draft, whose pass is wider than the one
before, pays for all of them again. Padded to one width no pass does, but those without a draft cost
more. The width follows from the cost curve alone: to learn it from the drafts as well gains less
than changes of width cost.

Source: CUDA C++ Programming Guide, CUDA graphs.
"""

from __future__ import annotations

import numpy as np

from codespec.cost.cost_curve import CostCurve
from codespec.types import Draft, PassState

_USUAL = {1: 1.0, 2: 1.64, 3: 1.86, 4: 2.05, 5: 2.18, 6: 2.29, 8: 2.41, 16: 2.55}
"""Width -> tokens emitted a pass where edits are replayed, the mean of several repositories; 1 is
plain decoding."""


def padded_width(curve: CostCurve) -> int:
    """Width to pad passes to: the one with the most tokens a millisecond, of those whose passes
    were measured in a row; 1 for no padding."""
    steady = curve.steady
    if not steady:
        return 1
    widths = list(_USUAL)
    rates = {1: 1.0 / curve.quiet_ms(1)} | {
        n: float(np.interp(n, widths, list(_USUAL.values()))) / ms for n, ms in steady.items()
    }
    return max(rates, key=lambda n: rates[n])


def padded(draft: Draft, state: PassState, n_room: int) -> Draft:
    """`draft`, padded to the pass's width with tokens that are never accepted; unchanged for a tree
    or where the pass has no room. n_room: most drafted tokens of the pass."""
    n = state.width - state.n_tail
    if n <= len(draft) or n > n_room or not draft.is_chain:
        return draft
    tokens = np.zeros(n, np.int32)
    tokens[: len(draft)] = draft.tokens
    return Draft.chain(tokens)
