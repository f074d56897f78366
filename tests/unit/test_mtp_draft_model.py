"""A target's MTP head as a draft model: its drafts, and none where hidden states are unknown."""

import numpy as np
import pytest

from codespec.backends.base import MtpHead
from codespec.backends.fake import FakeTarget
from codespec.drafters.model_drafter import ModelDrafter
from codespec.drafters.mtp_draft_model import MtpDraftModel
from codespec.types import NO_DRAFT, NO_TOKENS, Context, PassState, SamplingParams, Tokens

PROMPT = np.arange(40, 60, dtype=np.int32)


class Knowing(FakeTarget, MtpHead):
    """Knows what the target read: `n` tokens."""

    n = 100

    def knows(self, tokens: Tokens) -> bool:
        return len(tokens) <= self.n


def never():
    return False


def tokens(*ids):
    return np.array(ids, np.int32)


@pytest.fixture
def layer():
    return MtpDraftModel(Knowing())


@pytest.fixture
def model(layer):
    return layer._own


def likeliest(said, n):
    target = FakeTarget()
    out = []
    for _ in range(n):
        whole = np.concatenate([said, tokens(*out)])
        target.prefill(whole, never)
        out.append(target.decode(whole[target.n_cached :], NO_DRAFT).argmax(0))
        target.keep([])
    return out


def test_it_says_what_follows(layer):
    layer.begin(Context(PROMPT))
    layer.read(never)
    assert layer.n_cached == len(PROMPT) - 1
    layer.catch_up(tokens(7), never)
    said = [layer.next()[0] for _ in range(3)]
    assert said == likeliest(np.append(PROMPT, np.int32(7)), 3)


def test_what_the_target_has_not_read_is_unknown(layer, model):
    layer.begin(Context(PROMPT))
    model.n = 10
    layer.read(never)
    assert layer.n_cached == 0
    layer.catch_up(NO_TOKENS, never)
    assert layer.next() is None
    assert layer.draw(3) == ([], [])
    model.n = 100
    layer.catch_up(NO_TOKENS, never)
    assert layer.next()[0] == likeliest(PROMPT, 1)[0]


@pytest.mark.parametrize("sampling", [SamplingParams(), SamplingParams(1.0, any_seed=True)])
def test_a_drafter_that_knows_nothing_drafts_nothing(layer, model, sampling):
    drafter = ModelDrafter(layer)
    drafter.begin(Context(PROMPT, sampling=sampling))
    model.n = 10
    assert not len(drafter.propose(PassState(), 4))
    model.n = 100
    assert len(drafter.propose(PassState(), 4))
