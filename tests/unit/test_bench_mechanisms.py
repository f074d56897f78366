"""Drafting with a part left out, to see what that brings: the part is gone, the output the same."""

from __future__ import annotations

import pytest

from codespec.backends.fake import ByteTokenizer, FakeTarget, hashed_logits
from codespec.drafters.chain import DraftChain
from codespec.drafters.cost import CostCurve
from codespec.drafters.guard import Policy
from codespec.drafters.measure import CurveStore
from codespec.drafters.model import ModelDrafter
from codespec.drafters.small import SharedVocabulary
from codespec.engine.completer import Completer
from codespec.engine.output import Limits
from codespec.engine.pace import Pace, Paces
from codespec.sampling import Sampler
from codespec.types import NO_TOKENS, Context, PassState, SamplingParams
from codespec_bench.mechanisms import AlwaysGoingBack, NeverSure

TOKENIZER = ByteTokenizer()
CHEAP = {1: 1.0, 33: 1.1}


def fake() -> FakeTarget:
    return FakeTarget(hashed_logits(256), n_vocab=256)


@pytest.mark.parametrize("chain", [DraftChain, AlwaysGoingBack])
@pytest.mark.parametrize("drafter", [ModelDrafter, NeverSure])
def test_output_depends_on_none_of_them(chain, drafter):
    curve = CostCurve(CHEAP, back_ms=0.2)
    model = drafter(SharedVocabulary(fake()), curve, CostCurve({1: 0.01}))

    def run(*members) -> tuple[list[int], int]:
        context = Context(TOKENIZER.encode("abcabcab"), TOKENIZER.encode("abcabcab"))
        made = chain(members, 256, 4, curve, policy=Policy.RAISE)
        emitted, _ = Completer(fake(), made).run(context, Sampler(SamplingParams()), Limits(40))
        return emitted, made.counters.n_accepted

    plain, drafted = run(), run(model)
    assert drafted[0] == plain[0]
    assert drafted[1] > plain[1] == 0


def test_the_way_back_as_part_of_every_wide_pass():
    for made, is_single in ((DraftChain, False), (AlwaysGoingBack, True)):
        chain = made([], 256)
        chain.begin(Context(NO_TOKENS))
        assert chain.state(NO_TOKENS, 1, False).after_single == is_single


def test_a_model_that_is_never_sure_expects_of_all_tokens_the_same():
    curve, own = CostCurve(CHEAP), CostCurve({1: 0.01})
    probs = []
    for made in (ModelDrafter, NeverSure):
        drafter = made(SharedVocabulary(fake()), curve, own)
        drafter.begin(Context(TOKENIZER.encode("abcabcab")))
        probs.append(set(drafter.propose(PassState(), 8).probs.tolist()))
    assert len(probs[0]) > 1 == len(probs[1])


def test_costs_that_passes_do_not_refine(tmp_path):
    target, store = fake(), CurveStore(tmp_path / "curves.json")
    measured = CostCurve({1: 1.0, 8: 2.0})
    store.save("m:1", measured)
    paces = [Pace(target, (1,), store, "m") for _ in range(2)]
    Paces(paces[1:]).freeze()
    for pace in paces:
        for n in (1, 1, 8) * 20:
            pace.observe(n, 9.0)
        pace.learn()
    assert [pace.curve.points == measured.points for pace in paces] == [False, True]
