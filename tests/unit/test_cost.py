from __future__ import annotations

import numpy as np
import pytest

from codespec.backends.fake import FakeTarget
from codespec.drafters.cost import (
    FLAT,
    MEASURED_AT,
    CostCurve,
    best_width,
    load_or_measure,
    measure,
)

STEPS = CostCurve({1: 1.0, 2: 1.8, 3: 2.1, 4: 2.3, 8: 3.5, 16: 5.6})


def test_linear_between_points_and_beyond():
    ms = STEPS.ms(np.array([1, 2, 6, 16, 24]))
    np.testing.assert_allclose(ms, [1.0, 1.8, 2.9, 5.6, 7.7])


def test_measured_dips_are_smoothed_away():
    np.testing.assert_allclose(CostCurve({1: 1.0, 2: 0.9, 4: 2.0}).ms(np.array([2])), [1.0])


@pytest.mark.parametrize("points", [{}, {0: 1.0}, {1: 0.0}, {1: -1.0}])
def test_impossible_curves_are_refused(points):
    with pytest.raises(ValueError, match="cost curve"):
        CostCurve(points)


def test_width_is_the_best_of_all_widths():
    rng = np.random.default_rng(1)
    for _ in range(200):
        probs = rng.random(12).astype(np.float32)
        k, rate = best_width(probs, STEPS)
        rates = [
            (1 + np.cumprod(probs)[:n].sum()) / STEPS.ms(np.array([n + 1]))[0] for n in range(13)
        ]
        assert k == int(np.argmax(rates))
        assert rate == pytest.approx(max(rates))


def test_nothing_is_drafted_where_nothing_pays():
    assert best_width(np.full(8, 0.5, np.float32), STEPS)[0] == 0
    assert best_width(np.full(8, 0.99, np.float32), STEPS)[0] == 8
    assert best_width(np.full(8, 0.5, np.float32), FLAT)[0] == 8
    # Free to verify, but not to draft.
    assert best_width(np.full(8, 0.5, np.float32), FLAT, draft_ms=0.9)[0] == 0


class Clock:
    """Time passes by itself, a little at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def test_measuring_leaves_the_target_usable():
    target = FakeTarget(max_draft=20)
    curve = measure(target, clock=Clock())
    assert list(curve.points) == [n for n in MEASURED_AT if n <= 21]
    tokens = np.arange(5, dtype=np.int32)
    target.prefill(tokens, lambda: False)
    assert target.n_cached < 5


def test_a_slow_target_is_not_measured_for_long():
    class Slow(Clock):
        def __call__(self) -> float:
            self.now += 1.0
            return self.now

    clock = Slow()
    curve = measure(FakeTarget(), clock=clock)
    assert 1 in curve.points
    assert clock.now < 60


def test_curves_are_kept_and_damage_is_mended(tmp_path):
    file = tmp_path / "curves.json"
    first = load_or_measure(file, "a", FakeTarget())
    assert load_or_measure(file, "a", FakeTarget()).points == first.points
    other = load_or_measure(file, "b", FakeTarget())
    assert load_or_measure(file, "b", FakeTarget()).points == other.points
    for damage in (
        b"",
        b"{",
        b"[1]",
        b'{"a": 3}',
        b'{"a": {"x": 1}}',
        b'{"a": {"1": -1}}',
        b"\xff",
    ):
        file.write_bytes(damage)
        again = load_or_measure(file, "a", FakeTarget())
        assert load_or_measure(file, "a", FakeTarget()).points == again.points


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    assert load_or_measure(tmp_path / "missing" / "curves.json", "a", FakeTarget()).points
