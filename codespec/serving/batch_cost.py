"""The cost of an engine's step, by the number of rows in it and the width of their drafts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from codespec.cost.cost_curve import CostCurve

WIDE = {1: 1.0, 64: 2.0}
"""A guess for an engine with free width: 64 tokens cost twice as much as one."""


class BatchCost:
    """Cost curve of an engine's steps over their tokens, that steps refine. Of a batch every row
    drafts, so a token of a row's draft is charged as if each row had one more.

    curve: see `CostCurve`. learns: False to keep it as it is.
    """

    def __init__(self, curve: CostCurve, learns: bool) -> None:
        self._curve = curve
        self._learns = learns

    def costs(self, n_rows: int, n_max: int) -> npt.NDArray[np.float64]:
        """(n_max + 1,) milliseconds of a step whose `n_rows` rows each draft 0, 1, ... tokens."""
        return np.ascontiguousarray(self._curve.ms(n_rows * np.arange(1, n_max + 2)), np.float64)

    def observe(self, n_tokens: int, ms: float) -> None:
        """Learn from a step over so many tokens, prompts not included."""
        if self._learns:
            self._curve.observe(n_tokens, ms)
