"""Measuring cost curves in steps, and the file they are kept in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codespec.backends.fake import FakeRows, FakeTarget
from codespec.cost.measure import MEASURED_AT, SHORT, USUAL, CurveStore, measure, measuring, prior
from codespec.types import NO_DRAFT, Draft, Tokens


class Clock:
    """Time passes by itself, a little at each look."""

    def __init__(self, step: float = 0.001) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Machine(FakeTarget):
    """A target whose passes take a known time on a clock of its own."""

    def __init__(
        self, law: Callable[[int, int], float], back_ms: float = 0.0, **options: Any
    ) -> None:
        super().__init__(**options)
        self.now = 0.0
        self.law = law
        self.back_ms = back_ms
        self.n_last = 1

    def clock(self) -> float:
        return self.now

    def decode(self, tokens: Tokens, draft: Draft) -> FakeRows:
        n_context = self.n_cached
        rows = super().decode(tokens, draft)
        n = len(tokens) + len(draft)
        self.now += (self.law(n, n_context) + self.back_ms * (n == 1 < self.n_last)) / 1e3
        self.n_last = n
        return rows


def test_the_measured_curve_is_the_machine_s():
    def law(n, n_context):
        return 2.0 + 0.5 * n + 3.0 * (n > 8) + n_context * (0.001 + 0.0002 * n)

    target = Machine(law)
    curve = measure(target, clock=target.clock)
    assert list(curve.points) == [n for n in MEASURED_AT if n <= 65]
    for n in (1, 2, 8, 9, 12, 32):
        assert curve.table[n - 1] == pytest.approx(law(n, USUAL), rel=0.01)


def test_a_wider_pass_bears_the_way_back_to_one_token():
    target = Machine(lambda n, n_context: 1.0 + 0.2 * n, back_ms=0.3)
    curve = measure(target, clock=target.clock)
    assert curve.back_ms == pytest.approx(0.3)
    assert curve.points[1] == pytest.approx(1.2)
    assert curve.points[4] == pytest.approx(1.8)
    assert curve.table[0] == pytest.approx(1.2)
    assert curve.table[3] == pytest.approx(1.8 + 0.2)  # two times of three it comes to that


class Recorder(Machine):
    """An accelerator: a pass over another width than the last is launched piece by piece, the next
    one recorded, and those after it are replayed."""

    LAUNCHES_MS, RECORDS_MS = 0.5, 1.5

    def __init__(self, law: Callable[[int, int], float]) -> None:
        super().__init__(law)
        self.info = replace(self.info, backend="cuda")
        self.n_alike = 0

    def decode(self, tokens: Tokens, draft: Draft) -> FakeRows:
        n_before = self.n_last
        rows = super().decode(tokens, draft)
        self.n_alike = self.n_alike + 1 if self.n_last == n_before else 1
        extra = {1: self.LAUNCHES_MS, 2: self.RECORDS_MS}
        self.now += extra.get(self.n_alike, 0.0) / 1e3
        return rows


def test_on_an_accelerator_one_token_costs_what_its_replayed_pass_costs():
    target = Recorder(lambda n, n_context: 1.0 + 0.2 * n)
    curve = measure(target, clock=target.clock)
    assert curve.points[1] == pytest.approx(1.2)
    for n in (2, 3, 8, 32):
        assert curve.points[n] == pytest.approx(1.0 + 0.2 * n + target.LAUNCHES_MS, rel=0.01)
    assert curve.back_ms == pytest.approx(target.LAUNCHES_MS + target.RECORDS_MS, rel=0.01)
    assert curve.steady == {n: pytest.approx(1.0 + 0.2 * n) for n in (2, 3, 4, 5, 6, 8, 12, 16, 17)}


def test_no_width_is_kept_where_passes_are_not_recorded():
    target = Machine(lambda n, n_context: 1.0 + 0.2 * n)
    assert not measure(target, clock=target.clock).steady
    target = Recorder(lambda n, n_context: 1.0 + 0.2 * n)
    target.can = replace(
        target.can, rolls_back=False
    )  # what only fills a pass up cannot be taken back
    assert not measure(target, clock=target.clock).steady


def test_slow_spells_do_not_bend_the_curve():
    """Half of the time the machine is three times as slow, for longer than a pass or two."""
    rng = np.random.default_rng(1)
    slow = np.repeat(rng.random(2000) < 0.5, 7)
    spells = iter(np.where(slow, 3.0, 1.0).tolist() * 2)

    def law(n, n_context):
        return (2.0 + 0.5 * n) * next(spells)

    target = Machine(law)
    curve = measure(target, clock=target.clock)
    for n, ms in curve.points.items():
        assert ms / curve.points[1] == pytest.approx((2.0 + 0.5 * n) / 2.5, rel=0.02)


@pytest.mark.parametrize(("factor", "lasts_ms"), [(4.0, 3000.0), (3.0, 10_000.0), (100.0, 1.0)])
def test_one_slow_spell_does_not_bend_the_curve_of_a_slow_model(factor, lasts_ms):
    """Most of its widths are measured once, and kept."""

    def law(n):
        return 400.0 * (0.9 + 0.1 * n)

    class Spell(Machine):
        """Slower by the factor for a while."""

        def __init__(self, start_ms: float) -> None:
            super().__init__(lambda n, n_context: law(n) * (factor if self.is_in() else 1.0))
            self.start_ms = start_ms

        def is_in(self):
            return 0 <= self.now * 1e3 - self.start_ms < lasts_ms

    for start_ms in range(0, 12_000, 250):
        target = Spell(start_ms)
        curve = measure(target, clock=target.clock)
        for n, ms in curve.points.items():
            assert ms / curve.points[1] == pytest.approx(law(n) / law(1), rel=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("single_ms", [1.0, 40.0, 500.0])
def test_a_machine_that_is_suspended_in_a_pass_measures_as_any_other(single_ms):
    """An hour in one pass is no time that was spent on measuring, nor what that pass costs."""

    def law(n):
        return single_ms * (0.95 + 0.05 * n)

    class Suspended(Machine):
        def __init__(self, at: int) -> None:
            super().__init__(lambda n, n_context: law(n))
            self.n_left = at

        def decode(self, tokens: Tokens, draft: Draft) -> FakeRows:
            self.n_left -= 1
            self.now += 3600.0 * (self.n_left == 0)
            return super().decode(tokens, draft)

    usual = measure(target := Suspended(0), clock=target.clock)
    for at in range(1, 100):
        curve = measure(target := Suspended(at), clock=target.clock)
        assert curve.points == pytest.approx(usual.points, rel=0.01)
        assert curve.back_ms == pytest.approx(usual.back_ms, abs=0.01 * single_ms)


def test_where_there_is_no_time_to_measure_a_guess_stays():
    """A pass takes five seconds: one over two tokens would be too many."""
    target = Machine(lambda n, n_context: 5000.0 + 1000.0 * n)
    curve = measure(target, clock=target.clock)
    assert curve.points[1] == 6000.0
    assert curve.pass_ms(16) > 2 * curve.pass_ms(4) > 3 * curve.pass_ms(1)


def test_measuring_leaves_the_target_usable():
    target = FakeTarget(max_draft=20)
    curve = measure(target, clock=Clock())
    assert list(curve.points) == [n for n in MEASURED_AT if n <= 21]
    target.prefill(np.arange(5, dtype=np.int32), lambda: False)
    assert target.n_cached < 5


def test_a_model_that_takes_no_drafts_has_one_point():
    assert list(measure(FakeTarget(max_draft=0), clock=Clock()).points) == [1]


def test_a_slow_target_is_not_measured_for_long():
    target, clock = FakeTarget(), Clock(1.0)
    curve = measure(target, clock=clock)
    assert 1 in curve.points
    assert clock.now < 60
    assert target.n_cached == SHORT + 1


def test_requests_may_come_in_between():
    """Between any two steps somebody else may have used the target; an interrupted step is done
    again."""

    def law(n, n_context):
        return 1.0 + n

    target = Machine(law)
    answers = iter([True, False, True, True] * 500)
    steps = measuring(target, n_repeats=2, clock=target.clock, interrupted=lambda: next(answers))
    other = np.arange(40, dtype=np.int32)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            curve = end.value
            break
        target.prefill(other, lambda: False)
        target.decode(other[target.n_cached :], NO_DRAFT)
        target.keep([])
    for n, ms in curve.points.items():
        assert ms == pytest.approx(law(n, 0))


def test_curves_are_kept_and_damage_is_mended(tmp_path):
    file = tmp_path / "new" / "curves.json"
    store = CurveStore(file)
    assert store.load("a") is None
    target = Recorder(lambda n, n_context: 1.0 + 0.2 * n)
    curve = measure(target, clock=target.clock)
    store.save("a", curve)
    store.save("b", prior(FakeTarget().info))
    again = CurveStore(file).load("a")
    assert again is not None
    assert again.points == pytest.approx(curve.points)
    assert again.back_ms == curve.back_ms
    assert again.steady == curve.steady != {}
    for damage in (b"", b"{", b"[1]", b'{"a": 3}', b'{"a": {"points": {"1": -1}}}', b"\xff"):
        file.write_bytes(damage)
        assert store.load("a") is None
        store.save("a", curve)
        assert store.load("a") is not None


@pytest.mark.parametrize(
    ("slope", "ms"),
    [((0.0, 0.0), (1.0, 2.0, 1.1)), ((1e-3, 5e-4), (1.672, 4.24, 1.996))],
    ids=["without", "with"],
)
def test_a_curve_of_an_earlier_version_is_one_behind_the_usual_context(tmp_path, slope, ms):
    """It was measured behind 64 tokens, and says what a token more adds."""
    earlier = {"points": {"1": 1.0, "8": 2.0}, "n_context": 64, "back_ms": 0.1}
    earlier |= {"slope_fixed": slope[0], "slope_per_token": slope[1], "steady": {"2": 1.1}}
    file = tmp_path / "curves.json"
    file.write_text(json.dumps({"a": earlier}))
    store = CurveStore(file)
    for _ in range(2):
        curve = store.load("a")
        assert curve is not None
        assert (*curve.points.values(), curve.steady[2]) == pytest.approx(ms)
        assert curve.back_ms == 0.1
        store.save("a", curve)  # as of this version


def test_a_damaged_curve_does_not_take_the_others_along(tmp_path):
    file = tmp_path / "curves.json"
    store = CurveStore(file)
    store.save("a", prior(FakeTarget().info))
    file.write_bytes(b'{"b": {"points": 3}, ' + file.read_bytes()[1:])
    store.save("c", prior(FakeTarget().info))
    assert [store.load(key) is not None for key in "abc"] == [True, False, True]


ABSURD = {
    "points": {"1": 1.0, "32": 1e308},
    "steady": {"128": 0.5},
    "slope_fixed": 1e308,
    "slope_per_token": -1e300,
    "back_ms": 1e308,
    "n_context": 1 << 40,
}


@pytest.mark.parametrize("key", ABSURD)
def test_a_curve_that_nobody_measured_is_measured_again(tmp_path, key):
    """The first passes of a request do not refine it while a figure is missing."""
    file = tmp_path / "curves.json"
    sound = {"points": {"1": 1.0, "8": 2.0}, "n_context": 64, "back_ms": 0.1}
    sound |= {"slope_fixed": 0.0, "slope_per_token": 0.0, "steady": {"2": 1.1}}
    file.write_text(json.dumps({"a": sound, "b": sound | {key: ABSURD[key]}}))
    assert CurveStore(file).load("a") is not None
    assert CurveStore(file).load("b") is None


def test_curves_that_were_saved_last_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("codespec.cost.measure.MAX_CURVES", 3)
    store = CurveStore(tmp_path / "curves.json")
    for key in "abcad":
        store.save(key, prior(FakeTarget().info))
    assert [store.load(key) is not None for key in "abcd"] == [True, False, True, True]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    store = CurveStore(tmp_path / "file" / "curves.json")
    store.save("a", prior(FakeTarget().info))
    assert store.load("a") is None
