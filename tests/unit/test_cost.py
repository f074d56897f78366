from __future__ import annotations

import numpy as np
import pytest

from codespec.cost.cost_curve import FLAT, CostCurve, best_width
from codespec.cost.refined import N_TABLE
from codespec.types import NO_TOKENS, PassState

STEPS = CostCurve({1: 1.0, 2: 1.8, 3: 2.1, 4: 2.3, 8: 3.5, 16: 5.6})


def test_linear_between_points_and_beyond():
    ms = STEPS.ms(np.array([1, 2, 6, 16, 24]))
    np.testing.assert_allclose(ms, [1.0, 1.8, 2.9, 5.6, 7.7])


def test_points_in_the_wrong_order_are_both_in_doubt():
    curve = CostCurve({1: 1.0, 2: 4.0, 4: 2.0, 8: 8.0})
    np.testing.assert_allclose(curve.ms(np.array([1, 2, 3, 4, 8])), [1.0, 3.0, 3.0, 3.0, 8.0])


@pytest.mark.parametrize("points", [{}, {0: 1.0}, {1: 0.0}, {1: -1.0}, {1: np.nan}, {1: np.inf}])
def test_impossible_curves_are_refused(points):
    with pytest.raises(ValueError, match="cost curve"):
        CostCurve(points)


def test_width_is_the_best_of_all_widths():
    rng = np.random.default_rng(1)
    for _ in range(200):
        probs = rng.random(12).astype(np.float32)
        k, rate = best_width(probs.tolist(), STEPS)
        rates = [
            (1 + np.cumprod(probs)[:n].sum()) / STEPS.ms(np.array([n + 1]))[0] for n in range(13)
        ]
        assert k == int(np.argmax(rates))
        assert rate == pytest.approx(max(rates))


def test_nothing_is_drafted_where_nothing_pays():
    assert best_width([0.5] * 8, STEPS)[0] == 0
    assert best_width([0.99] * 8, STEPS)[0] == 8
    assert best_width([0.5] * 8, FLAT)[0] == 8
    # Free to verify, but not to draft.
    assert best_width([0.5] * 8, FLAT, draft_ms=0.9)[0] == 0


def with_reading(probs, n_tail):
    """Cost of passes with the first 0, 1, ... tokens of a chain, by what may come of each."""
    curve = CostCurve(STEPS.points)
    again_ms = (STEPS.pass_ms(9) - STEPS.pass_ms(2)) / 7
    path = np.concatenate([[1.0], np.cumprod(probs)])
    for k in range(len(probs) + 1):
        wrong_at = path[:k] - path[1 : k + 1]  # after so many that were right
        n_again = (wrong_at * (n_tail + np.arange(k))).sum()
        yield curve.pass_ms(n_tail + k) + again_ms * n_again


@pytest.mark.parametrize("n_tail", [1, 5])
def test_what_will_have_to_be_read_again_is_part_of_the_cost(n_tail):
    rng = np.random.default_rng(2)
    state = PassState(NO_TOKENS, n_tail)
    # Of a cache that can be cut, a pass always reads one.
    assert CostCurve(STEPS.points).n_tail(state) == 1
    curve = CostCurve(STEPS.points, rolls_back=False)
    assert curve.n_tail(state) == n_tail
    widths = set()
    for _ in range(200):
        probs = rng.random(8) ** 0.2
        k, rate = best_width(probs.tolist(), curve, state)
        costs = list(with_reading(probs, n_tail))
        path = np.cumprod(probs)
        rates = [(1 + path[:n].sum()) / cost for n, cost in enumerate(costs)]
        assert rate == pytest.approx(max(rates))
        assert rates[k] == pytest.approx(max(rates))
        widths.add(k)
    assert len(widths) > 2
    assert best_width([0.9] * 8, STEPS)[0] > best_width([0.9] * 8, curve)[0]


def test_the_table_is_the_curve():
    np.testing.assert_allclose(STEPS.table, STEPS.ms(np.arange(1, N_TABLE + 1)))
    beyond = STEPS.ms(np.array([N_TABLE + 10]))[0]
    assert beyond == pytest.approx(STEPS.table[-1] + 10 * (STEPS.table[-1] - STEPS.table[-2]))


def test_real_passes_mend_the_shape():
    """A wrong curve under a load that comes and goes ends at the true ratios."""
    rng = np.random.default_rng(4)
    true = CostCurve({1: 1.0, 2: 1.8, 4: 2.3, 8: 3.5, 16: 5.6})
    curve = CostCurve({1: 1.0, 2: 1.2, 4: 1.4, 8: 1.6, 16: 2.0})
    for i in range(4000):
        n = int(rng.choice([2, 3, 4, 6, 8, 12, 16])) if rng.random() < 0.6 else 1
        load = 3.0 if i // 500 % 2 else 1.0
        noise = 8.0 if rng.random() < 0.05 else rng.lognormal(0, 0.05)  # now and then preempted
        curve.observe(n, true.ms(np.array([n]))[0] * load * noise)
    got = curve.table[[1, 3, 7, 15]] / curve.table[0]
    want = true.table[[1, 3, 7, 15]] / true.table[0]
    np.testing.assert_allclose(got, want, rtol=0.15)


def test_what_all_wider_passes_take_more_is_soon_known():
    """From a width or two for all of them."""
    curve = CostCurve({1: 1.0, 2: 1.5, 4: 2.0, 8: 3.0})
    for i in range(60):
        for n in (1, 1, 2 if i % 2 else 4):
            curve.observe(n, {1: 1.0, 2: 1.8, 4: 2.4}[n])
    assert curve.points[8] / curve.points[1] == pytest.approx(3.6, rel=0.06)


def test_the_pass_after_a_wider_one_teaches_nothing():
    """Its excess is part of the wider one's cost."""
    curve = CostCurve({1: 1.0, 8: 3.0}, back_ms=0.5)
    for n, ms in ((1, 1.0), (8, 3.0), (1, 1.5), (1, 1.0)) * 100:
        curve.observe(n, ms)
    assert curve.n_observed == 300
    np.testing.assert_allclose(curve.table[[0, 7]], [1.0, 3.0 + 0.5 * 2 / 3], rtol=1e-6)


def test_the_way_back_is_due_once():
    curve = CostCurve({1: 1.0, 9: 5.0}, back_ms=0.6)
    single, wide = PassState(), PassState(after_single=False)
    np.testing.assert_allclose(curve.first(single, 3), [1.0, 1.5 + 0.4, 2.0 + 0.4])
    np.testing.assert_allclose(curve.first(wide, 3), [1.0 + 0.2, 1.5, 2.0])
    np.testing.assert_allclose(curve.either_first(wide, 3)[0], curve.first(wide, 3))
    np.testing.assert_allclose(curve.first(wide, 200)[[0, 2, 199]], [1.2, 2.0, 100.5])
    assert best_width([0.6], curve, wide)[0] == 1  # 1.6 tokens in 1.5 ms, beside one in 1.2
    np.testing.assert_allclose(curve.either_first(single, 3)[1], curve.first(single, 3))
    assert best_width([0.6], curve, single)[0] == 0
    # Passes of one width have no way back.
    curve = CostCurve({1: 1.0, 5: 3.0, 9: 5.0}, back_ms=0.6, steady={5: 1.5})
    np.testing.assert_allclose(*curve.either_first(PassState(width=5), 9))


def test_passes_of_one_width_cost_what_they_cost_in_a_row():
    curve = CostCurve({1: 1.0, 2: 3.0, 5: 3.2, 9: 4.0}, back_ms=0.5, steady={5: 1.5})
    np.testing.assert_allclose(curve.table[[0, 1, 4, 8]], [1.0, *np.array([3.0, 3.2, 4.0]) + 1 / 3])
    # A wider one is followed by two that are new again.
    free, full = (curve.table_of(n) for n in (1, 5))
    np.testing.assert_allclose(full[[0, 1, 4, 8]], [1.5, 1.5, 1.5, 4.0 + 2 * (3.2 - 1.5)])
    np.testing.assert_allclose(curve.first(PassState(width=5), len(full)), full)
    assert curve.pass_ms(3, width=5) == pytest.approx(1.5)
    np.testing.assert_allclose(curve.table, free)
    assert [curve.settled_ms(1, n) for n in range(3)] == [1.25, 1.25, 1.0]
    assert [curve.settled_ms(5, n) for n in (0, 1, 2, 9)] == pytest.approx([3.2, 3.2, 1.5, 1.5])
    with pytest.raises(ValueError, match="measured"):
        curve.pass_ms(1, width=4)
    for wrong in ({0: 1.0}, {4: 0.0}, {4: float("nan")}):
        with pytest.raises(ValueError, match="points"):
            CostCurve({1: 1.0}, steady=wrong)


def test_passes_of_one_width_teach_once_they_are_repeated():
    points = {1: 1.0, 5: 3.0}
    curve = CostCurve(points, steady={5: 1.5})
    for _ in range(60):
        for ms in (9.0, 9.0, *[2.0] * 20):  # in truth
            curve.observe(5, ms)
        curve.observe(9, 6.0)
    assert curve.pass_ms(5, width=5) == pytest.approx(2.0, rel=0.03)
    assert curve.steady[5] > 1.5
    guessed = CostCurve(points, is_prior=True, steady={5: 1.5})
    for _ in range(3):
        guessed.observe(5, 30.0)
    assert guessed.pass_ms(5, width=5) == pytest.approx(30.0)
    # After a wide pass, two of one token feel it.
    curve = CostCurve(points, steady={5: 1.5})
    for ms in (3.0, 7.0, 7.0, 1.0) * 100:
        curve.observe(5 if ms == 3.0 else 1, ms)
    np.testing.assert_allclose(curve.table[[0, 4]], [1.0, 3.0], rtol=1e-6)


def test_a_busy_machine_bends_nothing():
    """Stalls hit all widths alike; that one width is seen most must not lower it."""
    rng = np.random.default_rng(5)
    curve = CostCurve({1: 1.0, 4: 2.3, 8: 3.5})
    for _ in range(8000):
        n = int(rng.choice([1, 4, 8], p=[0.9, 0.07, 0.03]))
        stall = rng.exponential(8.0) if rng.random() < 0.3 else 0.0
        curve.observe(n, {1: 1.0, 4: 2.3, 8: 3.5}[n] * (rng.lognormal(0, 0.2) + stall))
    np.testing.assert_allclose(curve.table[[3, 7]] / curve.table[0], [2.3, 3.5], rtol=0.25)


def test_load_changes_the_speed_and_not_the_shape():
    curve = CostCurve({1: 1.0, 4: 2.0, 8: 3.0})
    before = curve.table / curve.table[0]
    for _ in range(100):
        curve.observe(4, 20.0)
    assert curve.ms(np.array([4]))[0] == pytest.approx(20.0, rel=0.05)
    np.testing.assert_allclose(curve.table[:8] / curve.table[0], before[:8], rtol=0.6)
    # What is kept is free of the load.
    assert curve.points[1] < 2.0
    assert curve.quiet_ms(1) < 2.0


def test_the_first_pass_scales_a_guess():
    curve = CostCurve({1: 1.0, 8: 2.0}, is_prior=True)
    curve.observe(8, 200.0)
    np.testing.assert_allclose(curve.ms(np.array([1, 8])), [100.0, 200.0])


def test_the_rest_of_a_long_prompt_is_no_slow_pass():
    """Passes beyond the table, one at the beginning of each request, take what the curve says."""
    law = {1: 1.0, 4: 2.0, 32: 8.0}
    curve = CostCurve(law)
    start = curve.table.copy()
    for _ in range(100):
        curve.observe(256, 8.0 + 224 * 6 / 28)
        for n in (1, 4):
            curve.observe(n, law[n])
    np.testing.assert_allclose(curve.table[:32], start[:32], rtol=1e-3)
    guess = CostCurve({1: 1.0, 32: 32.0}, is_prior=True)
    guess.observe(512, 3 * 512.0)
    assert guess.pass_ms(1) == pytest.approx(3.0)


@pytest.mark.parametrize("bad", [(0, 1.0), (1, 0.0), (2, -1.0)])
def test_impossible_passes_teach_nothing(bad):
    curve = CostCurve({1: 1.0, 4: 2.0})
    curve.observe(*bad)
    assert curve.n_observed == 0


def test_a_busy_machine_does_not_bend_the_curve_where_only_one_width_is_seen():
    """Plain decoding beside a heavy load: mostly quick passes, now and then one of many times."""
    rng = np.random.default_rng(7)
    curve = CostCurve({1: 1.0, 2: 1.8, 4: 2.3, 8: 3.5})
    before = curve.points
    for _ in range(5000):
        curve.observe(1, 1.0 if rng.random() < 0.7 else rng.uniform(5, 100))
    after = curve.points
    assert after[2] / after[1] == pytest.approx(before[2] / before[1], rel=0.15)
