"""Drafting with a part left out, to see what that brings: the part is gone, the output the same."""

from __future__ import annotations

import pytest

from codespec.backends.fake import ByteTokenizer, FakeTarget, hashed_logits
from codespec.cost.cost_curve import CostCurve
from codespec.cost.measure import CurveStore
from codespec.cost.tuner import Tuner, Tuners
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.draft_model import SameVocabularyModel
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.model_drafter import ModelDrafter
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import NO_TOKENS, Context, PassState, SamplingParams
from codespec.verify.sampling import Sampler
from codespec_bench.maintainers.mechanisms import AlwaysGoingBack, NeverSure

TOKENIZER = ByteTokenizer()
CHEAP = {1: 1.0, 33: 1.1}


def fake() -> FakeTarget:
    return FakeTarget(hashed_logits(256), n_vocab=256)


@pytest.mark.parametrize("chain", [CombinedDrafter, AlwaysGoingBack])
@pytest.mark.parametrize("drafter", [ModelDrafter, NeverSure])
def test_output_depends_on_none_of_them(chain, drafter):
    curve = CostCurve(CHEAP, back_ms=0.2)
    model = drafter(SameVocabularyModel(fake()), curve, CostCurve({1: 0.01}))

    def run(*members) -> tuple[list[int], int]:
        context = Context(TOKENIZER.encode("abcabcab"), TOKENIZER.encode("abcabcab"))
        made = chain(members, 256, 4, curve, policy=GuardPolicy.RAISE)
        emitted, _ = Completer(fake(), made).run(
            context, Sampler(SamplingParams()), OutputLimits(40)
        )
        return emitted, made.counters.n_accepted

    plain, drafted = run(), run(model)
    assert drafted[0] == plain[0]
    assert drafted[1] > plain[1] == 0


def test_the_way_back_as_part_of_every_wide_pass():
    for made, is_single in ((CombinedDrafter, False), (AlwaysGoingBack, True)):
        chain = made([], 256)
        chain.begin(Context(NO_TOKENS))
        assert chain.state(NO_TOKENS, 1, False).after_single == is_single


def test_a_model_that_is_never_sure_expects_of_all_tokens_the_same():
    curve, own = CostCurve(CHEAP), CostCurve({1: 0.01})
    probs = []
    for made in (ModelDrafter, NeverSure):
        drafter = made(SameVocabularyModel(fake()), curve, own)
        drafter.begin(Context(TOKENIZER.encode("abcabcab")))
        probs.append(set(drafter.propose(PassState(), 8).probs.tolist()))
    assert len(probs[0]) > 1 == len(probs[1])


def test_costs_that_passes_do_not_refine(tmp_path):
    target, store = fake(), CurveStore(tmp_path / "curves.json")
    measured = CostCurve({1: 1.0, 8: 2.0})
    store.save("m:1", measured)
    tuners = [Tuner(target, (1,), store, "m") for _ in range(2)]
    Tuners(tuners[1:]).freeze()
    for tuner in tuners:
        for n in (1, 1, 8) * 20:
            tuner.observe(n, 9.0)
        tuner.learn()
    assert [tuner.curve.points == measured.points for tuner in tuners] == [False, True]
