"""How much of what was drafted the model agreed with, as benchmarks report it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from codespec.drafters.cost import CostCurve
from codespec.types import Trace


def by_source(traces: Iterable[Trace]) -> dict[str, list[int]]:
    """source -> [accepted, drafted]."""
    found: dict[str, list[int]] = {}
    for trace in traces:
        for source, stats in trace.by_source.items():
            counts = found.setdefault(source, [0, 0])
            counts[0] += stats.n_accepted
            counts[1] += stats.n_drafted
    return dict(sorted(found.items()))


def by_position(traces: Sequence[Trace]) -> list[list[int]]:
    """[accepted, drafted] of the first, second, ... token of drafts; a tree counts by its depth."""
    passes = [p for t in traces for p in zip(t.pass_depth, t.pass_accepted, strict=True)]
    deepest = max((depth for depth, _ in passes), default=0)
    return [
        [sum(a >= n for _, a in passes), sum(d >= n for d, _ in passes)]
        for n in range(1, deepest + 1)
    ]


def cost_in_passes(trace: Trace, curve: CostCurve) -> float:
    """What the passes of a generation cost by the curve, in passes of one token; nothing but
    passes. In such units the machine's speed of the moment, which a curve follows, cancels out."""
    return float((curve.ms(_widths(trace) + 1) / curve.ms(np.ones(1, np.int64))).sum())


def _widths(trace: Trace) -> npt.NDArray[np.int64]:
    """Drafted tokens of each pass. A chain is as wide as it is deep; of trees only the total is
    known, and given to passes by their depth."""
    depths = np.array(trace.pass_depth, np.float64)
    total = depths.sum()
    return np.rint(depths * (trace.n_drafted / total if total else 0.0)).astype(np.int64)
