"""How much of what was drafted the model agreed with, as benchmarks report it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
