"""Figures of a completion for users: latency, speed, acceptance rate, and the gain of drafting,
measured against plain decoding."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from codespec.engine.energy import EnergyMeter
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of one completion; times in milliseconds.

    time_to_first_token: from the request to the first token, the prefill included.
    time_per_token:      average over the tokens after those of the first pass.
    tokens_per_pass:     emitted tokens a pass of the target; 1 is plain decoding.
    pass_percentiles:    p50, p90 and p99 of the passes' times.
    accepted_at:         acceptance rate of the drafted tokens at each depth, from depth 1.
    accepted_of:         acceptance rate of each source.
    """

    time_to_first_token: float
    time_per_token: float
    tokens_per_pass: float
    pass_percentiles: tuple[float, float, float]
    accepted_at: tuple[float, ...]
    accepted_of: dict[str, float]


def measures(trace: Trace) -> Measures:
    n_passes = max(trace.n_target_passes, 1)
    n_first = trace.pass_accepted[0] + 1 if trace.pass_accepted else 0
    n_later = trace.n_tokens - n_first
    later_ms = trace.ms - trace.context_ms - trace.finish_ms - trace.first_token_ms
    p50, p90, p99 = (
        np.percentile(trace.pass_ms, [50, 90, 99]).tolist() if trace.pass_ms else (0.0, 0.0, 0.0)
    )
    at: list[float] = []
    for depth in range(1, max(trace.pass_depth, default=0) + 1):
        n_drafted = sum(d >= depth for d in trace.pass_depth)
        at.append(sum(a >= depth for a in trace.pass_accepted) / n_drafted)
    return Measures(
        time_to_first_token=trace.context_ms + trace.first_token_ms,
        time_per_token=max(later_ms, 0.0) / n_later if n_later > 0 else 0.0,
        tokens_per_pass=trace.n_tokens / n_passes,
        pass_percentiles=(p50, p90, p99),
        accepted_at=tuple(at),
        accepted_of={
            source: stats.n_accepted / stats.n_drafted
            for source, stats in sorted(trace.by_source.items())
            if stats.n_drafted
        },
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same request with and without drafting; medians of `n_repeats` runs each, in turns, with
    the prompt in the KV cache.

    speedup:    plain time over drafted time; below 1 drafting lost.
    same_text:  True if all runs gave the same text. Texts may part at a tie between two tokens.
    joules_per_token: energy of plain and of drafted decoding, other programs' use included; None
        where the machine has no counter.
    """

    n_repeats: int
    plain_ms: float
    drafted_ms: float
    speedup: float
    same_text: bool
    joules_per_token: tuple[float, float] | None


def compare(
    complete: Callable[[CompletionRequest], Completion],
    request: CompletionRequest,
    n_repeats: int = 5,
    meter: EnergyMeter | None = None,
) -> Comparison:
    """Run `request` with and without drafting. Its deadline is ignored."""
    meter = meter or EnergyMeter()
    drafted = dataclasses.replace(request, deadline_ms=0.0)
    plain = dataclasses.replace(drafted, drafters=())
    complete(plain)
    complete(drafted)
    ways = (plain, drafted)
    times: tuple[list[float], list[float]] = ([], [])
    joules, n_tokens = [0.0, 0.0], [0, 0]
    texts: set[str] = set()
    for _ in range(n_repeats):
        for i, way in enumerate(ways):
            meter.start()
            completion = complete(way)
            joules[i] += meter.joules() or 0.0
            n_tokens[i] += completion.trace.n_tokens
            times[i].append(completion.trace.ms)
            texts.add(completion.text)
    plain_ms, drafted_ms = (statistics.median(t) for t in times)
    return Comparison(
        n_repeats,
        plain_ms,
        drafted_ms,
        plain_ms / drafted_ms if drafted_ms else 1.0,
        len(texts) == 1,
        _per_token(joules, n_tokens) if meter.sources else None,
    )


def _per_token(joules: Sequence[float], n_tokens: Sequence[int]) -> tuple[float, float]:
    return (joules[0] / max(n_tokens[0], 1), joules[1] / max(n_tokens[1], 1))
