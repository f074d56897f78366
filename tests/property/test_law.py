"""Sampling with drafts follows the target's distribution: chi-square over short outputs.

Every kind of draft is tried on a small vocabulary, where the law of a whole output can be written
down exactly and compared with many seeds.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.drafters.guard import GuardPolicy
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import Context, Draft, SamplingParams
from codespec.verify.accept import propose
from codespec.verify.sampling import Sampler
from tests.drafters import ScriptedDrafter, combined, drafter_over, tree

N_VOCAB = 4
N_TOKENS = 3
N_SEEDS = 6000
FEW_SEEDS = 1000  # where outputs are compared one by one, not only by their law
PROMPT = [0, 1, 2]
TARGET = hashed_logits(N_VOCAB, 1.2)
# 63 degrees of freedom; the 0.9999 quantile, so that six runs fail by chance once in 1,600.
CRITICAL = 113.5


def exact_law(sampling: SamplingParams) -> np.ndarray:
    """P(output) of plain decoding for every output of N_TOKENS tokens, in lexical order."""
    sampler = Sampler(sampling)
    law = []
    for output in itertools.product(range(N_VOCAB), repeat=N_TOKENS):
        p = 1.0
        for i, token in enumerate(output):
            context = tuple([*PROMPT, *output[:i]][-3:])
            p *= sampler.distribution(TARGET(context), output[:i])[token]
        law.append(p)
    return np.array(law)


@functools.cache  # several ask for plain decoding
def sampled(make_drafter, n_seeds=N_SEEDS, **options) -> np.ndarray:
    """The output of each of so many seeds: its place in lexical order."""
    outputs = np.empty(n_seeds, np.int64)
    for seed in range(n_seeds):
        sampling = SamplingParams(seed=seed, **options)
        target = FakeTarget(TARGET, N_VOCAB, eog=frozenset())
        drafters = [make_drafter(seed, sampling)] if make_drafter else []
        # Random trees may hold a token twice.
        hostile = GuardPolicy.LEAVE_OUT
        completer = Completer(target, combined(drafters, N_VOCAB, 8, policy=hostile))
        context = Context(np.array(PROMPT, np.int32), sampling=sampling)
        out, _ = completer.run(context, Sampler(sampling), OutputLimits(N_TOKENS))
        outputs[seed] = np.ravel_multi_index(out, [N_VOCAB] * N_TOKENS)
    return outputs


def chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    assert counts[law == 0].sum() == 0, "an output the target never gives"
    expected = law[law > 0] * counts.sum()
    return float(((counts[law > 0] - expected) ** 2 / expected).sum())


def lookup_like(seed, sampling):
    """Deterministic: a fixed chain, right now and then."""
    return ScriptedDrafter(lambda emitted, n: Draft.chain([2, 1, 0][:n]))


def random_tree(seed, sampling):
    """Deterministic for the target: chosen without looking at its draw."""
    rng = np.random.default_rng(seed)

    def script(emitted, n):
        k = min(n, 6)
        return tree(rng.integers(0, N_VOCAB, k), [int(rng.integers(-1, i)) for i in range(k)])

    return ScriptedDrafter(script)


def true_sample(seed, sampling):
    """A chain really sampled from a law of its own, far from the target's."""
    sampler = Sampler(sampling)
    q = np.array([0.1, 0.2, 0.3, 0.4], np.float32)

    def script(emitted, n):
        tokens = [propose(q, sampler, len(emitted) + i) for i in range(n)]
        return Draft.chain(tokens, q=np.tile(q, (n, 1)))

    return ScriptedDrafter(script)


def model_drafter(seed, sampling):
    """The product's own draft-model drafter, over a model that is half right."""
    other = hashed_logits(N_VOCAB, 0.6)

    def logits(context):
        return (0.5 * TARGET(context) + 0.5 * other(context)).astype(np.float32)

    return drafter_over(FakeTarget(logits, N_VOCAB, eog=frozenset()), CostCurve({1: 1, 9: 1.01}))


SAMPLING: dict[str, Any] = {"temperature": 0.9}
ANY_SEED = {"any_seed": True}
TRUNCATED = {"temperature": 1.1, "top_k": 3, "top_p": 0.95, "repetition_penalty": 1.2}
PENALISED = {"temperature": 0.8, "frequency_penalty": 0.6, "presence_penalty": 0.4, "min_p": 0.05}


@pytest.mark.parametrize(
    "options",
    [SAMPLING | ANY_SEED, TRUNCATED | PENALISED | ANY_SEED],
    ids=["plain", "whole-chain"],
)
@pytest.mark.parametrize(
    "drafter",
    [None, lookup_like, random_tree, true_sample, model_drafter],
    ids=["none", "lookup", "tree", "sampled", "model"],
)
def test_the_output_follows_the_target(drafter, options):
    law = exact_law(SamplingParams(**options))
    counts = np.bincount(sampled(drafter, **options), minlength=len(law))
    assert chi_square(counts, law) < CRITICAL


@pytest.mark.parametrize("options", [SAMPLING, TRUNCATED | PENALISED], ids=["plain", "whole-chain"])
@pytest.mark.parametrize(
    "drafter",
    [lookup_like, random_tree, true_sample, model_drafter],
    ids=["lookup", "tree", "sampled", "model"],
)
def test_a_seed_that_was_asked_for_gives_the_same_tokens_whatever_is_drafted(drafter, options):
    plain = sampled(None, FEW_SEEDS, **options)
    np.testing.assert_array_equal(sampled(drafter, FEW_SEEDS, **options), plain)


def test_the_test_notices_a_biased_rule():
    """Accepting every draft would pass no chi-square: the test can fail."""
    law = exact_law(SamplingParams(**SAMPLING))
    counts = np.zeros(len(law))
    counts[np.ravel_multi_index([2, 1, 0], [N_VOCAB] * N_TOKENS)] = N_SEEDS
    assert chi_square(counts, law) > 10 * CRITICAL


def test_rejection_accepts_often_when_the_laws_agree():
    """With q equal to p every token is accepted."""

    def drafter(seed, sampling):
        return drafter_over(FakeTarget(TARGET, N_VOCAB, eog=frozenset()), FLAT)

    sampling = SamplingParams(temperature=1.0, seed=5, any_seed=True)
    target = FakeTarget(TARGET, N_VOCAB, eog=frozenset())
    completer = Completer(target, combined([drafter(0, sampling)], N_VOCAB))
    context = Context(np.array(PROMPT, np.int32), sampling=sampling)
    out, _ = completer.run(context, Sampler(sampling), OutputLimits(40, max_width=7))
    assert len(out) == 40
    assert target.n_passes == 5


def test_a_draft_that_was_not_sampled_is_not_believed():
    """Tokens that are not the draw from the q they come with are refused."""
    q = np.tile(np.full(N_VOCAB, 0.25, np.float32), (3, 1))
    plain = sampled(None, FEW_SEEDS, **SAMPLING)

    def liar(seed, sampling):
        sampler = Sampler(sampling)

        def script(emitted, n):
            right = [propose(q[0], sampler, len(emitted) + i) for i in range(n)]
            return Draft.chain([(t + 1) % N_VOCAB for t in right], q=q[:n])

        return ScriptedDrafter(script)

    np.testing.assert_array_equal(sampled(liar, FEW_SEEDS, **SAMPLING, **ANY_SEED), plain)
