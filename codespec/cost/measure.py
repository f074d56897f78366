"""Measuring cost curves, one pass at a time, and storing them.

A curve is measured once for each model, backend, number of threads and build of llama.cpp, while
nobody waits (`LocalEngine.idle`); until then a prior stands in, and real passes refine both.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from codespec.backends.base import CancelledError, Target
from codespec.cost.cost_curve import CostCurve
from codespec.cost.refined import N_SETTLING
from codespec.system.files import write_atomically
from codespec.system.folders import private_opener
from codespec.types import NO_DRAFT, Draft, ModelInfo, Tokens

MEASURED_AT = (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 24, 32)
"""Widths that are timed, on both sides of known steps: llama.cpp's kernels change at 4, 8 and 16
tokens, ours at 17."""

USUAL, SHORT = 512, 64
"""Tokens in the KV cache before each timed pass; SHORT where the prefill of USUAL takes long. The
cost of a pass grows with them, for all widths about alike: real passes soon teach that, as any
other load."""

N_ROUNDS = 15
"""Rounds of a measurement: each times every width once, and of a width the median counts."""

MAX_CURVES = 200
"""Most curves in the store, one for each model and number of threads, about 300 bytes each."""

# Widths that passes may be padded to.
_STEADY_AT = (2, 3, 4, 5, 6, 8, 12, 16, 17)

# A pass is timed again where it costs more than so many times the cost of the width before, scaled
# by tokens, or less than that cost divided by it.
_SURPRISE = 1.5

# Where a token of a pass takes so many times as long as the quickest pass, the machine was
# suspended or the process stopped meanwhile.
_STILL = 4.0

# Shapes before anything was measured: medians of small and middling models in q8_0 on two cores,
# and 1.5 and 7 billion parameters on an H200, where llama.cpp's kernels change after 8 tokens.
_PRIOR_CPU = {1: 1.0, 2: 1.6, 3: 1.9, 4: 2.2, 6: 3.2, 8: 3.6, 12: 5.0, 16: 6.3, 24: 9.0, 32: 11.5}
_PRIOR_GPU = {1: 1.0, 2: 1.5, 5: 1.6, 9: 2.4, 16: 2.6, 32: 3.0}
_PRIOR_BACK, _PRIOR_STEADY = 1.2, {2: 1.05, 3: 1.12, 4: 1.22, 5: 1.32}  # with CUDA
_ON_CPU = "cpu", "fake"
_PRIOR_BYTES_PER_MS = {"cpu": 15e6}
_PRIOR_GPU_BYTES_PER_MS = 300e6

Clock = Callable[[], float]


def prior(info: ModelInfo) -> CostCurve:
    """A prior curve from the backend and the size of the file; the first real pass sets its
    scale."""
    shape = _PRIOR_CPU if info.backend in _ON_CPU else _PRIOR_GPU
    bytes_per_ms = _PRIOR_BYTES_PER_MS.get(info.backend, _PRIOR_GPU_BYTES_PER_MS)
    ms = max(info.file_bytes / bytes_per_ms, 0.05)
    points = {n: ratio * ms for n, ratio in shape.items()}
    if info.backend != "cuda":
        return CostCurve(points, is_prior=True)
    steady = {n: ratio * ms for n, ratio in _PRIOR_STEADY.items()}
    return CostCurve(points, back_ms=_PRIOR_BACK * ms, is_prior=True, steady=steady)


def measure(
    target: Target,
    n_context: int | None = None,
    n_repeats: int | None = None,
    budget_s: float = 2.0,
    clock: Clock = time.perf_counter,
) -> CostCurve:
    """Measure a cost curve in one go, see `measuring`."""
    steps = measuring(target, n_context, n_repeats, budget_s, clock)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def measuring(
    target: Target,
    n_context: int | None = None,
    n_repeats: int | None = None,
    budget_s: float = 2.0,
    clock: Clock = time.perf_counter,
    interrupted: Callable[[], bool] = lambda: False,
) -> Generator[None, None, CostCurve]:
    """Measure a cost curve. Yields after each pass; others may use the target in between.

    The width is chosen by ratios, so ratios are measured: before each pass over n tokens come two
    over a single one, and the median of n against the last of them counts. Neighbours on the
    machine slow all three, for seconds at a time; of separate minima, one width would have found a
    quiet moment and another not. Scale is the least time of a single token. What the first costs
    more follows from another width, as after a draft, and is `back_ms`. On an accelerator they are
    three (`N_SETTLING`), and narrow passes are repeated as often, for what they cost then.

    Takes about 700 passes on a small model. On a large one it stops early: once `budget_s` is spent
    no further round begins, and none goes on at 4 times the budget.

    n_context:   tokens in the cache before each pass; None: USUAL, or SHORT where reading takes
        longer than the budget.
    n_repeats:   rounds; None: N_ROUNDS.
    interrupted: asked while a context is read; the step is then done again.
    """
    n_repeats = N_ROUNDS if n_repeats is None else n_repeats
    bench = _Bench(target, clock, interrupted)
    widths = [n for n in MEASURED_AT if n - 1 <= target.can.max_draft]
    if n_context is None:
        yield from _timed(bench, SHORT, [1])
        n_context = USUAL if bench.read_s * USUAL / SHORT < budget_s else SHORT
    found = yield from _points(bench, n_context, widths, n_repeats, budget_s)
    points = found.points
    if len(points) == 1 < len(widths):  # no time for any other
        points |= {n: ratio * points[1] for n, ratio in bench.guess.items()}
    return CostCurve(points, found.back_ms, steady=found.steady)


class _Points(NamedTuple):
    """A curve measured behind one context; fields as of `CostCurve`, in milliseconds."""

    points: dict[int, float]
    steady: dict[int, float]
    back_ms: float


def _points(
    bench: _Bench, n_context: int, widths: list[int], n_repeats: int, budget_s: float
) -> Generator[None, None, _Points]:
    n_before = 2 if bench.is_cpu else 1 + N_SETTLING
    may_fill = not bench.is_cpu and bench.rolls_back
    singles: list[float] = []
    back: list[float] = []
    ratios: dict[int, list[float]] = {}
    repeated: dict[int, list[float]] = {}
    spent_s, bench.quickest_ms = 0.0, math.inf
    for _ in range(n_repeats):
        n_known, known = 1, 1.0  # the width before and its ratio
        for n in widths:
            if singles and spent_s > 4 * budget_s:
                continue
            # A slow model's passes over one token differ by little, and are repeated no more.
            n_singles = n_before if spent_s < budget_s or not singles else 0
            n_wide = N_SETTLING if may_fill and n in _STEADY_AT else 0
            narrow, wide = [1] * n_singles, [n] * (n > 1)
            took = yield from _timed(bench, n_context, narrow + wide + [n] * n_wide)
            spent_s += sum(took) / 1e3
            if n_singles:
                *others, single = took[:n_singles]
                singles.append(single)
                back.append(sum(others) / single - len(others))
            if n == 1:
                continue
            single = singles[-1] if n_singles else min(singles)
            ratio = took[n_singles] / single
            if n_wide:
                repeated.setdefault(n, []).append(took[-1] / single)
            if n not in ratios:
                # A slow spell may begin and end at any time, and there may be no other round to
                # outvote it.
                if not known / _SURPRISE < ratio < _SURPRISE * n / n_known * known:
                    single, again = yield from _timed(bench, n_context, [1, n])
                    spent_s += (single + again) / 1e3
                    ratio = again / single if ratio < known else min(ratio, again / single)
                ratio = max(ratio, known)
            n_known, known = n, ratio
            ratios.setdefault(n, []).append(ratio)
        if spent_s >= budget_s:
            break
    single = min(singles)
    points = {1: single, **{n: float(np.median(r)) * single for n, r in ratios.items()}}
    steady = {n: float(np.median(r)) * single for n, r in repeated.items()}
    return _Points(points, steady, max(0.0, float(np.median(back))) * single)


def _timed(bench: _Bench, n_context: int, widths: list[int]) -> Generator[None, None, list[float]]:
    """Milliseconds of passes over these widths, one after the other; they are made again where the
    machine stood still during one."""
    took: list[float] = []
    for _ in range(2):
        took = []
        for n in widths:
            ms = None
            while ms is None:
                ms = bench.time(n_context, n)
                yield
            took.append(ms)
        bench.quickest_ms = min(bench.quickest_ms, *took)
        most_ms = _STILL * bench.quickest_ms
        if all(ms <= n * most_ms for n, ms in zip(widths, took, strict=True)):
            break
    return took


class _Bench:
    """Passes over random tokens behind a random context.

    read_s: seconds of the last prefill. quickest_ms: of the passes behind it.
    """

    def __init__(self, target: Target, clock: Clock, interrupted: Callable[[], bool]) -> None:
        self._target = target
        self._clock = clock
        self._interrupted = interrupted
        self._rng = np.random.default_rng(0)
        self._n_most = target.info.n_ctx // 2
        self.is_cpu = target.info.backend in _ON_CPU
        self.rolls_back = target.can.rolls_back
        self.guess = _PRIOR_CPU if self.is_cpu else _PRIOR_GPU
        self._context = self._tokens(self._n_most + 1)
        self.read_s = 0.0
        self.quickest_ms = math.inf

    def time(self, n_context: int, n: int) -> float | None:
        """Milliseconds of a pass over n tokens; None when a request came first."""
        tokens = self._context[: min(n_context, self._n_most) + 1]
        start = self._clock()
        try:
            self._target.prefill(tokens, self._interrupted)
            tail = tokens[self._target.n_cached :]
            if len(tail) > 1:
                self._target.decode(tail[:-1], NO_DRAFT)
                self._target.keep([])
                tail = tokens[self._target.n_cached :]
                self.read_s = self._clock() - start
        except CancelledError:
            return None
        draft = Draft.chain(self._tokens(n - 1)) if n > 1 else NO_DRAFT
        start = self._clock()
        self._target.decode(tail, draft)
        took = (self._clock() - start) * 1e3
        self._target.keep([])
        return max(took, 1e-6)

    def _tokens(self, n: int) -> Tokens:
        return self._rng.integers(0, self._target.info.n_vocab, n).astype(np.int32)


_Slope = Annotated[float, msgspec.Meta(ge=0, le=1e3)]


class _Saved(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A curve in the file. Those of earlier versions have the cost of a token of context for a pass
    over n tokens, slope_fixed + slope_per_token * n ms, beyond the n_context of the measurement.
    """

    points: dict[int, float]
    back_ms: float
    steady: dict[int, float] = {}
    n_context: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = USUAL
    slope_fixed: _Slope = 0.0
    slope_per_token: _Slope = 0.0

    def behind_usual(self, points: dict[int, float]) -> dict[int, float]:
        more, (fixed, each) = USUAL - self.n_context, (self.slope_fixed, self.slope_per_token)
        # A line that is followed to a much shorter context may promise too much.
        return {n: max(ms + more * (fixed + each * n), ms / 4) for n, ms in points.items()}


class CurveStore:
    """Cost curves in one JSON file, by key; at most MAX_CURVES, those saved last. A cache: a curve
    that cannot be read is measured again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, key: str) -> CostCurve | None:
        """The curve of that key; None where it is missing or damaged."""
        with contextlib.suppress(KeyError, ValueError):  # the latter of msgspec, too
            saved = msgspec.json.decode(self._read()[key], type=_Saved)
            points, steady = saved.behind_usual(saved.points), saved.behind_usual(saved.steady)
            return CostCurve(points, saved.back_ms, steady=steady)
        return None

    def save(self, key: str, curve: CostCurve) -> None:
        """Store a curve under that key. An unwritable file is no error."""
        known = self._read()
        saved = _Saved(curve.points, curve.back_ms, curve.steady)
        known.pop(key, None)
        known[key] = msgspec.Raw(msgspec.json.encode(saved))
        kept = dict(list(known.items())[-MAX_CURVES:])
        with contextlib.suppress(OSError):  # a cache that cannot be written is measured again
            write_atomically(self._path, msgspec.json.encode(kept))

    def _read(self) -> dict[str, msgspec.Raw]:
        try:
            with open(self._path, "rb", opener=private_opener) as file:
                return msgspec.json.decode(file.read(), type=dict[str, msgspec.Raw])
        except (OSError, msgspec.DecodeError):
            return {}
