"""Times of a step by its tokens, T(n): measured ones, and rooflines that are said to be such."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ..replay_report import load_curve
from .simulation import SimulatedEngine

_PASSES = Path(__file__).with_name("passes.json")
_CONTEXT_BYTES = 1300 * 2 * 28 * 4 * 128 * 2
"""Keys and values of 1,300 tokens of Qwen2.5-7B in 16 bits, which a step reads for each row."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A server of a kind. source: where T(n) comes from."""

    name: str
    source: str
    engine: SimulatedEngine


def kinds() -> list[EngineKind]:
    """The servers of the table."""
    found = [
        EngineKind(f"7 B f16, {name}", "roofline", _roofline(bytes_a_s, flop_a_s))
        for name, bytes_a_s, flop_a_s in (
            ("H100", 2.8e12, 450e12),
            ("H200", 4.0e12, 450e12),
        )
    ]
    for name, curve, bytes_a_s in (
        ("7 B q8_0, H100", "h100-7b-q8", 2.8e12),
        ("7 B f16, H200", "h200-7b-f16", 4.0e12),
        ("1.5 B q8_0, H100", "h100-1500m-q8", 2.8e12),
        ("0.6 B q8_0, CPU", "cpu-600m-q8-ours", 0.0),
    ):
        points = load_curve(curve).points
        row_ms = _CONTEXT_BYTES / bytes_a_s * 1e3 if bytes_a_s else 0.0
        engine = SimulatedEngine(steps_through(list(points.items())), row_ms)
        found.append(EngineKind(name, f"measured: {curve}", engine))
    return found


def _roofline(bytes_a_s: float, flop_a_s: float) -> SimulatedEngine:
    """15.2 GB of weights read once a step, or 15.2 GFLOP a token, and 1.5 ms of launches, sampling
    and scheduling: an assumption, not a measurement."""
    n_bytes, flop_a_token = 15.2e9, 15.2e9

    def step_ms(n: int) -> float:
        return 1.5 + 1e3 * max(n_bytes / bytes_a_s, n * flop_a_token / flop_a_s)

    return SimulatedEngine(step_ms, _CONTEXT_BYTES / bytes_a_s * 1e3)


class steps_through:
    """T(n) through measured points, linear between them and, with the last slope, beyond them."""

    def __init__(self, points: Sequence[tuple[int, float]]) -> None:
        self._points = sorted(points)

    def __call__(self, n: int) -> float:
        points = self._points
        if n <= points[0][0]:
            return points[0][1]
        a, b = next(
            (pair for pair in pairwise(points) if n <= pair[1][0]), (points[-2], points[-1])
        )
        slope = max(0.0, (b[1] - a[1]) / (b[0] - a[0]))
        return a[1] + slope * (n - a[0])


def measured_passes() -> list[tuple[int, int]]:
    """(drafted, accepted) of passes that `python -m codespec_bench.rows_replay` recorded."""
    rows = json.loads(_PASSES.read_text("utf-8"))["passes"]
    return [(drafted, accepted) for drafted, accepted, n in rows for _ in range(n)]
