"""What a pass over n tokens costs on this machine, and the width that pays best.

A pass is not free in n: on a CPU eight tokens can cost four times as much as one, with steps where
kernels change. Drafting more than pays makes decoding slower than not drafting at all, so the
width is chosen by the measured curve.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from codespec.types import NO_DRAFT, Draft, TargetModel

MEASURED_AT = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


class CostCurve:
    """Milliseconds of a pass over n tokens, linear between measured points."""

    def __init__(self, points: dict[int, float]) -> None:
        if not points or min(points) < 1 or min(points.values()) <= 0:
            raise ValueError("a cost curve needs points (n >= 1, ms > 0)")
        self.points = dict(sorted(points.items()))
        self._n = np.array(list(self.points))
        # A pass over more tokens never costs less; measured dips are noise.
        self._ms = np.maximum.accumulate(np.array(list(self.points.values())))

    def ms(self, n: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Cost of passes over `n` tokens; beyond the last point the last slope goes on."""
        inside = np.asarray(np.interp(n, self._n, self._ms))
        if len(self._n) < 2:
            return inside
        slope = (self._ms[-1] - self._ms[-2]) / (self._n[-1] - self._n[-2])
        return inside + np.maximum(n - self._n[-1], 0) * slope


FLAT = CostCurve({1: 1.0})
"""A pass costs the same at every width: drafts are never cut."""


def best_width(
    probs: npt.NDArray[np.float32], curve: CostCurve, draft_ms: float = 0.0
) -> tuple[int, float]:
    """(k, tokens per millisecond) that maximise (1 + sum of path probabilities) / cost.

    probs:    (n,) P(node accepted | parent accepted) along a chain.
    draft_ms: time to draft one token, where drafting is not free.
    """
    k = np.arange(len(probs) + 1)
    expected = 1.0 + np.concatenate([[0.0], np.cumsum(np.cumprod(probs, dtype=np.float64))])
    rate = expected / (curve.ms(k + 1) + draft_ms * k)
    best = int(rate.argmax())
    return best, float(rate[best])


def measure(
    target: TargetModel,
    n_context: int = 256,
    n_repeats: int = 5,
    budget_s: float = 2.0,
    clock: Callable[[], float] = time.perf_counter,
) -> CostCurve:
    """Time passes of several widths, `n_context` tokens into the cache.

    The least of the repeats counts: a neighbour on the machine only ever adds time, and adds it
    unevenly, while the width is chosen by ratios.

    Takes about 30 passes on a small model and stops early on a large one: after `budget_s`, each
    remaining point is measured once, and none above 4 times the budget.
    """
    rng = np.random.default_rng(0)
    n_context = min(n_context, target.info.n_ctx // 2)
    tokens = rng.integers(0, target.info.n_vocab, n_context + 1).astype(np.int32)
    start = clock()
    points: dict[int, float] = {}
    for n in MEASURED_AT:
        if n - 1 > target.max_draft:
            break
        drafted = rng.integers(0, target.info.n_vocab, n - 1).astype(np.int32)
        draft = Draft.chain(drafted) if n > 1 else NO_DRAFT
        times: list[float] = []
        # The first pass of a width builds its graph and does not count.
        for i in range(n_repeats + 1):
            target.prefill(tokens, lambda: False)
            tail = tokens[target.n_cached :]
            if len(tail) > 1:
                target.decode(tail, NO_DRAFT)
                target.keep([])
                target.prefill(tokens, lambda: False)
                tail = tokens[target.n_cached :]
            t0 = clock()
            target.decode(tail, draft)
            times.append((clock() - t0) * 1e3)
            target.keep([])
            if i and clock() - start > budget_s:
                break
        points[n] = min(times[1:])
        if clock() - start > 4 * budget_s:
            break
    return CostCurve(points)


def load_or_measure(path: Path, key: str, target: TargetModel) -> CostCurve:
    """The curve stored under `key` in the JSON file `path`, measured and stored if it is not there.

    The file is a cache: unreadable content is replaced.
    """
    known: dict[str, dict[int, float]] = {}
    with contextlib.suppress(OSError, msgspec.DecodeError):
        known = msgspec.json.decode(path.read_bytes(), type=dict[str, dict[int, float]])
    if key in known:
        with contextlib.suppress(ValueError):
            return CostCurve(known[key])
    curve = measure(target)
    known[key] = curve.points
    with contextlib.suppress(OSError):  # a cache that cannot be written is measured again
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_bytes(msgspec.json.encode(known))
        temporary.replace(path)
    return curve
