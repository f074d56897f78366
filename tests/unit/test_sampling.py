"""The law of the next token: the sampler chain against definitions, the random stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.types import Logits, Probs, SamplingParams, Tokens
from codespec.verify.sampling import Sampler, draw, uniform

LOGITS = np.log(np.array([0.5, 0.25, 0.15, 0.07, 0.03], np.float32))


def law(emitted: Sequence[int] = (), **params: Any) -> Probs:
    options: dict[str, Any] = {"temperature": 1.0, **params}
    return Sampler(SamplingParams(**options)).distribution(LOGITS, emitted)


def test_plain_softmax():
    np.testing.assert_allclose(law(), [0.5, 0.25, 0.15, 0.07, 0.03], rtol=1e-6)


def test_temperature_sharpens():
    squared = np.array([0.5, 0.25, 0.15, 0.07, 0.03]) ** 2
    np.testing.assert_allclose(law(temperature=0.5), squared / squared.sum(), rtol=1e-5)


@pytest.mark.parametrize("temperature", [1e-5, 1e-308, 5e-324])
def test_the_limit_of_small_temperatures_is_greedy(temperature):
    several: list[dict[str, Any]] = [
        *({}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.1}, {"frequency_penalty": 9.0})
    ]
    for options in several:
        sampler = Sampler(SamplingParams(temperature=temperature, **options), OnlyOdd())
        greedy = Sampler(SamplingParams(**options), OnlyOdd())
        for emitted in ([], [1]):
            np.testing.assert_array_equal(
                sampler.distribution(LOGITS, emitted), greedy.distribution(LOGITS, emitted)
            )


@pytest.mark.parametrize(
    ("params", "kept"),
    [
        ({"top_k": 2}, 2),
        ({"top_k": 99}, 5),
        ({"top_p": 0.5}, 1),
        ({"top_p": 0.51}, 2),
        ({"top_p": 0.9}, 3),
        ({"min_p": 0.2}, 3),
        ({"min_p": 1.0}, 1),
        ({"top_k": 4, "top_p": 0.6, "min_p": 0.0}, 2),
    ],
)
def test_truncation_keeps_the_likeliest_and_renormalises(params, kept):
    full = law()
    cut = law(**params)
    assert np.count_nonzero(cut) == kept
    np.testing.assert_allclose(cut[:kept], full[:kept] / full[:kept].sum(), rtol=1e-6)


def test_greedy_is_one_hot_at_the_lowest_argmax():
    sampler = Sampler(SamplingParams())
    assert sampler.distribution(np.array([1, 3, 3], np.float32), []).tolist() == [0, 1, 0]


def test_repetition_penalty_sees_emitted_tokens_only_and_once():
    plain = Sampler(SamplingParams(temperature=1.0))
    penal = Sampler(SamplingParams(temperature=1.0, repetition_penalty=2.0))
    logits = np.array([2.0, -2.0, 1.0], np.float32)
    np.testing.assert_array_equal(penal.distribution(logits, []), plain.distribution(logits, []))
    expected = plain.distribution(np.array([1.0, -4.0, 1.0], np.float32), [])
    np.testing.assert_allclose(penal.distribution(logits, [0, 1, 0, 0]), expected)


class OnlyOdd:
    def allowed(self, emitted: Sequence[int]) -> Tokens:
        return np.array([1, 3], np.int32)

    def is_done(self, emitted: Sequence[int]) -> bool:
        return False


def test_a_mask_restricts_and_keeps_the_ratios():
    masked = Sampler(SamplingParams(temperature=1.0), OnlyOdd()).distribution(LOGITS, [])
    np.testing.assert_allclose(masked, [0, 0.25 / 0.32, 0, 0.07 / 0.32, 0], rtol=1e-6)


@given(st.integers(0, 2**64 - 1), st.integers(0, 10**6), st.integers(0, 3))
def test_uniform_depends_on_its_arguments_alone(seed, position, stream):
    u = uniform(seed, position, stream)
    assert 0 <= u < 1
    assert u == uniform(seed, position, stream)


def test_uniform_is_uniform_and_its_streams_are_independent():
    grid = np.array(
        [[uniform(seed, pos, s) for pos in range(200)] for seed in range(50) for s in (0, 1)]
    )
    counts = np.histogram(grid, bins=20, range=(0, 1))[0]
    expected = grid.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 43.8  # chi-square, 19 df, p = 0.001
    correlation = np.corrcoef(grid[0::2].ravel(), grid[1::2].ravel())[0, 1]
    assert abs(correlation) < 0.04
    lagged = np.corrcoef(grid[:, :-1].ravel(), grid[:, 1:].ravel())[0, 1]
    assert abs(lagged) < 0.03


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0, 1, exclude_max=True))
def test_draw_never_selects_probability_zero(weights, u):
    probs = np.array(weights)
    if probs.sum() < 1e-300:
        return
    assert probs[draw(probs / probs.sum(), u)] > 0


def test_draw_at_the_edges():
    probs = np.array([0.0, 0.5, 0.5, 0.0])
    assert draw(probs, 0.0) == 1
    assert draw(probs, 0.5) == 2
    assert draw(probs, 1 - 2**-53) == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": -1.0},
        {"top_p": 0.0},
        {"min_p": 2.0},
        {"top_k": -1},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": 1e-320},
        {"repetition_penalty": float("inf")},
        {"temperature": float("nan")},
    ],
)
def test_impossible_parameters_are_refused(bad):
    with pytest.raises(ValueError, match="need"):
        SamplingParams(**bad)


class Rows:
    """One row of logits."""

    def __init__(self, logits: Logits) -> None:
        self._logits = logits

    def row(self, i: int) -> Logits:
        return self._logits

    def argmax(self, i: int) -> int:
        return int(self._logits.argmax())


class Only:
    """A `LazyMask` of a few tokens, and how often all of them were listed."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids, self.n_listed = ids, 0

    def allowed(self, emitted: Sequence[int]) -> Tokens:
        self.n_listed += 1
        return np.array(self.ids, np.int32)

    def is_done(self, emitted: Sequence[int]) -> bool:
        return False

    def permits(self, emitted: Sequence[int], token: int) -> bool:
        return token in self.ids


@given(st.data())
def test_a_lazy_mask_says_what_a_list_would(data):
    """Ties included: of equal ones the lowest."""
    n = data.draw(st.integers(1, 120))
    logits = np.array(data.draw(st.lists(st.integers(-3, 60), min_size=n, max_size=n)), np.float32)
    ids = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1)))
    token = Sampler(SamplingParams(), Only(ids)).sample(Rows(logits), 0, [])
    masked = np.full(n, -np.inf)
    masked[ids] = logits[ids]
    assert token == masked.argmax()


def test_of_the_likeliest_one_is_asked_not_all():
    logits = np.arange(1000, dtype=np.float32)
    mask = Only([3, 980])
    assert Sampler(SamplingParams(), mask).sample(Rows(logits), 0, []) == 980
    assert mask.n_listed == 0
    far = Only([3])
    assert Sampler(SamplingParams(), far).sample(Rows(logits), 0, []) == 3
    assert far.n_listed == 1
