"""Threads are chosen by what passes take, on machines that change under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from codespec.backends.fake import FakeRows, FakeTarget
from codespec.config import ModelSettings
from codespec.cost.cost_curve import CostCurve
from codespec.cost.measure import CurveStore
from codespec.cost.tuner import ThreadChoice, Tuner, thread_counts
from codespec.engine.completer import Completer
from codespec.engine.loaded_models import curve_key
from codespec.engine.output import OutputLimits
from codespec.types import Context, Draft, LogitsRows, SamplingParams, Tokens, Trace
from codespec.verify.sampling import Sampler
from tests.drafters import combined


def run(choice, slowness, n_passes, rng):
    """(total time, share of passes on each count) of passes that take slowness[count] each."""
    total, used = 0.0, dict.fromkeys(slowness, 0)
    for _ in range(n_passes):
        n = choice.n_threads
        took = slowness[n] * rng.lognormal(0, 0.1)
        used[n] += 1
        total += took
        choice.observe(took)
    return total, {n: used[n] / n_passes for n in used}


def test_all_counts_stay_where_the_machine_is_quiet():
    rng = np.random.default_rng(1)
    total, used = run(ThreadChoice((4, 2, 1)), {4: 1.0, 2: 1.8, 1: 3.3}, 5000, rng)
    assert used[4] > 0.98
    assert total < 1.02 * 5000 * np.exp(0.005)


@pytest.mark.parametrize("stall", [2.5, 10.0])
def test_a_busy_neighbour_sends_threads_down_and_its_end_brings_them_back(stall):
    rng = np.random.default_rng(2)
    choice = ThreadChoice((2, 1))
    quiet, busy = {2: 1.0, 1: 1.7}, {2: stall, 1: 1.8}
    run(choice, quiet, 500, rng)
    total, used = run(choice, busy, 3000, rng)
    assert used[1] > 0.9
    assert total < 1.15 * 3000 * 1.8
    run(choice, quiet, 3000, rng)
    _, used = run(choice, quiet, 500, rng)
    assert used[2] > 0.9


@pytest.mark.parametrize("stall", [10.0, 1e6])
def test_single_passes_that_something_came_between_change_nothing(stall):
    rng = np.random.default_rng(4)
    choice = ThreadChoice((2, 1))
    slowness = {2: 1.0, 1: 1.25}
    run(choice, slowness, 500, rng)
    n_other = 0
    for _ in range(30):
        choice.observe(stall)
        _, used = run(choice, slowness, 99, rng)
        n_other += 99 * used[1]
    assert n_other < 0.02 * 3000


def test_busy_from_the_start():
    rng = np.random.default_rng(3)
    choice = ThreadChoice((8, 4, 2, 1))
    run(choice, {8: 20.0, 4: 12.0, 2: 6.0, 1: 1.0}, 400, rng)
    _, used = run(choice, {8: 20.0, 4: 12.0, 2: 6.0, 1: 1.0}, 2000, rng)
    assert used[1] > 0.9


def test_one_count_is_no_choice():
    choice = ThreadChoice((3,))
    for _ in range(100):
        choice.observe(100.0)
    assert choice.n_threads == 3


def test_counts():
    assert thread_counts(8) == (8, 4, 2, 1)
    assert thread_counts(6) == (6, 3, 1)
    assert thread_counts(1) == (1,)


class ThreadedFake(FakeTarget):
    def __init__(self) -> None:
        super().__init__()
        self.n_threads = 0
        self.used: set[int] = set()

    def set_threads(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def decode(self, tokens: Tokens, draft: Draft) -> FakeRows:
        self.used.add(self.n_threads)
        return super().decode(tokens, draft)


def test_every_count_has_its_curve(tmp_path):
    store = CurveStore(tmp_path / "curves.json")
    model = ThreadedFake()
    tuner = Tuner(model, (2, 1), store, "m")
    assert model.n_threads == 2
    assert tuner.curve.is_prior
    assert not tuner.is_measured
    for _ in tuner.measuring(lambda: False):
        assert model.n_threads == 2  # between steps a request finds the threads it chose
    assert tuner.is_measured
    assert model.used == {1, 2}
    assert not tuner.curve.is_prior
    again = Tuner(ThreadedFake(), (2, 1), store, "m")
    assert again.is_measured
    assert again.curve.points == pytest.approx(tuner.curve.points)
    assert not Tuner(ThreadedFake(), (2, 1), store, "another").is_measured


def test_what_passes_teach_is_kept(tmp_path):
    store = CurveStore(tmp_path / "curves.json")
    store.save("m:1", CostCurve({1: 1.0, 8: 1.0}))
    tuner = Tuner(ThreadedFake(), (1,), store, "m")
    for _ in range(500):
        tuner.observe(1, 1.0)
        tuner.observe(8, 3.0)
        tuner.observe(1, 5.0)  # back from a wider pass: no news of either
    tuner.save()
    kept = store.load("m:1")
    assert kept is not None
    assert kept.points[8] / kept.points[1] > 1.8


def test_passes_move_the_threads(tmp_path):
    model = ThreadedFake()
    tuner = Tuner(model, (2, 1), CurveStore(tmp_path / "curves.json"), "m")
    took = {2: 20.0, 1: 1.5}
    for _ in range(300):
        tuner.observe(1, took[model.n_threads])
    used = []
    for _ in range(300):
        tuner.observe(1, took[model.n_threads])
        used.append(model.n_threads)
    assert used.count(1) > 270
    # The curve shown is that of the count in use, close to what its passes take.
    assert tuner.curve.table[0] == pytest.approx(took[model.n_threads], rel=0.5)


def test_what_computes_otherwise_has_curves_of_its_own():
    on_cpu = replace(FakeTarget().info, backend="cpu")
    on_gpu = replace(on_cpu, backend="cuda")
    settings = [ModelSettings(), ModelSettings(kv_type="q8_0"), ModelSettings(n_gpu_layers=10)]
    assert len({curve_key(on_gpu, s, "build") for s in settings}) == 3
    assert curve_key(on_cpu, settings[0], "build") == curve_key(on_cpu, settings[2], "build")


def test_what_drawing_tokens_takes_is_no_part_of_what_passes_cost():
    """A law with top_p is sorted for each token, longer than a small model's pass takes."""
    now = 0.0
    seen: list[float] = []

    class Pass(FakeTarget):
        def decode(self, tokens: Tokens, draft: Draft) -> FakeRows:
            nonlocal now
            now += 0.002
            return super().decode(tokens, draft)

        def keep(self, path: Sequence[int]) -> None:
            nonlocal now
            now += 0.001
            super().keep(path)

    class SlowToDraw(Sampler):
        def sample(self, rows: LogitsRows, i: int, emitted: Sequence[int]) -> int:
            nonlocal now
            now += 0.005
            return super().sample(rows, i, emitted)

    completer = Completer(
        Pass(), combined([], 260), lambda: now, lambda widths, ms: seen.extend(ms)
    )
    trace = Trace()
    context = Context(np.frombuffer(b"def f(", np.uint8).astype(np.int32))
    completer.run(context, SlowToDraw(SamplingParams()), OutputLimits(8), trace=trace)
    assert seen == pytest.approx([3.0] * trace.n_target_passes)
    assert trace.target_ms == pytest.approx(8.0 * trace.n_target_passes)
