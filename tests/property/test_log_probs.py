"""Log-probabilities: natively as by numpy, and the same whatever is drafted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.engine.turns import in_one_turn
from codespec.native import log_probability
from codespec.types import Context, SamplingParams
from codespec.verify.sampling import Sampler
from tests.drafters import OracleDrafter, combined

N_VOCAB = 12
EOG = frozenset({11})


@given(st.integers(1, 700), st.integers(0, 2**32), st.sampled_from([0.1, 3.0, 40.0]))
def test_it_is_that_of_a_softmax(n: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    row = (rng.standard_normal(n) * scale).astype(np.float32)
    token = int(rng.integers(n))
    x = row.astype(np.float64)
    expected = x[token] - x.max() - np.log(np.exp(x - x.max()).sum())
    assert log_probability(row, token) == pytest.approx(max(expected, -100.0), abs=2e-5)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_what_is_no_number_is_as_unlikely_as_can_be(value: float) -> None:
    row = np.array([value, 2.0, value], np.float32)
    assert log_probability(row, 0) == -100.0
    assert log_probability(row, 1) == pytest.approx(0.0)
    with pytest.raises(IndexError):
        log_probability(row, 3)


def scored(draft: list[int], prompt: list[int], sampling: SamplingParams):
    target = FakeTarget(hashed_logits(N_VOCAB, 3.0), N_VOCAB, eog=EOG)
    context, limits = Context(np.array(prompt, np.int32), sampling=sampling), OutputLimits(24)
    drafters = combined([OracleDrafter(draft)] if draft else [], N_VOCAB)
    log_probs: list[float] = []
    turns = Completer(target, drafters).turns(
        context, Sampler(sampling), limits, log_probs=log_probs
    )
    tokens, finish = in_one_turn(turns)
    return tokens, finish, log_probs


@given(
    st.lists(st.integers(0, 10), min_size=1, max_size=8),
    st.sampled_from([0.0, 1.0]),
    st.integers(0, 2**32),
)
def test_drafts_change_none_of_them(prompt: list[int], temperature: float, seed: int) -> None:
    sampling = SamplingParams(temperature=temperature, seed=seed)
    tokens, finish, plain = scored([], prompt, sampling)
    # One more where a token ended the text.
    assert len(plain) == len(tokens) + (finish == "stop")
    assert scored(tokens, prompt, sampling) == (tokens, finish, plain)
    assert scored([*tokens[: len(tokens) // 2], 0, 0], prompt, sampling)[2] == plain
