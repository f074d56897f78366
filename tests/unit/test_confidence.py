"""The worth of a small model's own probabilities, and when it rests."""

from __future__ import annotations

import numpy as np
import pytest

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.confidence import Confidence
from codespec.types import ANY_PASS, Context, SamplingParams
from tests.drafters import drafter_over

CURVE = CostCurve({1: 1.0, 2: 1.2, 9: 2.6})
N_VOCAB = 20
PROMPT = np.array([1, 2, 3], np.int32)


def test_a_model_that_knows_when_it_is_right_is_of_use_where_the_mean_is_not():
    costs = np.array([1.0, 1.5, 2.0])
    knows, guesses = Confidence(), Confidence()
    for i in range(2000):
        is_right = i % 2 == 0
        for confidence, prob in ((knows, 0.95 if is_right else 0.15), (guesses, 0.55)):
            confidence.began(prob)
            confidence.learn(prob, is_right)
    # Every second time two tokens in 1.55 ms, else one in 1.05.
    assert knows.rate(0.5, costs, 0.05, 0.0) == pytest.approx(3.0 / 2.6, rel=0.02)
    # All alike, they are verified once they are made, and do not pay.
    assert guesses.rate(0.5, costs, 0.05, 0.0) == pytest.approx(1.5 / 1.55, rel=0.01)
    # All three drafted, where width is free: 1 + 0.5 (1 + 0.5).
    assert guesses.rate(0.5, np.ones(3), 0.0, 0.0) == pytest.approx(1.75, rel=0.02)
    assert knows.rate(0.5, costs, 0.05, 0.1) < knows.rate(0.5, costs, 0.05, 0.0)


def test_only_drafts_that_may_be_dropped_count_on_that():
    plans: list[int] = []
    for temperature in (0.0, 1.0):
        model = FakeTarget(hashed_logits(N_VOCAB), N_VOCAB)
        drafter = drafter_over(model, CostCurve({1: 1.0, 2: 1.6, 3: 2.4}))
        sampling = SamplingParams(temperature=temperature, any_seed=True)
        drafter.begin(Context(PROMPT, sampling=sampling))
        plans.append(drafter.plan(ANY_PASS, 2)[0])
    assert plans == [1, 0]


def test_the_model_rests_where_it_is_dear_and_would_draft_nothing():
    for own_ms, n_asked in ((0.9, 2), (0.01, 20)):
        small = FakeTarget(hashed_logits(N_VOCAB, 8.0), N_VOCAB, eog=frozenset())
        drafter = drafter_over(small, CURVE, CostCurve({1: own_ms, 9: 2 * own_ms}))
        drafter.begin(Context(PROMPT))
        asked = [drafter.is_due() and bool(drafter.plan(ANY_PASS, 4)) for _ in range(20)]
        assert sum(asked) == n_asked
