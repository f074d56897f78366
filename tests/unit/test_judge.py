"""What a small model thinks of what others would draft."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.drafters.base import Plan, Traits
from codespec.drafters.chain import DraftChain
from codespec.drafters.cost import CostCurve
from codespec.drafters.guard import Policy
from codespec.drafters.judge import Confidence, Pool, worth_of_asking
from codespec.drafters.lookup import REPOSITORY, LookupDrafter
from codespec.drafters.model import ModelDrafter
from codespec.drafters.small import DRAFT_MODEL
from codespec.native import margin
from codespec.types import (
    ANY_PASS,
    NO_DRAFT,
    NO_TOKENS,
    Context,
    Draft,
    PassState,
    SamplingParams,
    Verdict,
)
from tests.drafters import ScriptedDrafter, chain_of, drafter_over

CURVE = CostCurve({1: 1.0, 2: 1.2, 9: 2.6})
CHEAP = CostCurve({1: 0.01, 9: 0.02})
N_VOCAB = 20
PROMPT = np.array([1, 2, 3], np.int32)


def test_the_margin_is_over_the_largest_other():
    logits = np.array([1.0, 5.0, -math.inf, 2.0, 5.0], np.float32)
    assert [margin(logits, i) for i in range(5)] == [-4.0, 0.0, -math.inf, -3.0, 0.0]
    assert margin(logits[:4], 1) == 3.0
    assert margin(logits[:1], 0) == math.inf
    with pytest.raises(IndexError):
        margin(logits, 5)


def test_a_pool_trusts_a_model_that_is_right_and_learns_to_ignore_one_that_is_not():
    rng = np.random.default_rng(5)
    good, noise = Pool(), Pool()
    for _ in range(4000):
        was_accepted, prob = rng.random() < 0.5, 0.5
        good.learn(prob, 3.0 if was_accepted == (rng.random() < 0.9) else -3.0, was_accepted)
        noise.learn(prob, rng.choice([-3.0, 3.0]), was_accepted)
    assert good.accepted(0.5, 3.0) == pytest.approx(0.9, abs=0.07)
    assert good.accepted(0.5, -3.0) == pytest.approx(0.1, abs=0.07)
    for own in (-3.0, 3.0):
        assert noise.accepted(0.5, own) == pytest.approx(0.5, abs=0.15)
    # What the drafter expects counts at first, too, and bounds hold at the ends.
    fresh = Pool()
    assert fresh.accepted(0.2, 0.0) < fresh.accepted(0.8, 0.0)
    for prob in (0.0, 1.0):
        for own in (-1e9, 1e9, math.inf):
            assert 0.0 < fresh.accepted(prob, own) < 1.0


def test_no_opinion_changes_nothing():
    pool = Pool()
    before = pool.accepted(0.3, 1.0)
    pool.learn(0.3, -math.inf, True)
    assert pool.accepted(0.3, 1.0) == before
    assert pool.accepted(0.3, -math.inf) == 0.3


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


def test_perfect_knowledge_is_worth_what_it_saves():
    costs, rate = CURVE.first(ANY_PASS, 9), 0.9
    rng = np.random.default_rng(1)
    for _ in range(50):
        probs = rng.random(rng.integers(1, 8)).tolist()
        paths = np.cumprod([1.0, *probs])
        lengths = paths * np.append(1.0 - np.array(probs), 1.0)  # P(just so much is right)
        gains = 1 + np.arange(len(paths)) - rate * costs[: len(paths)]
        known = sum(p * gains[: n + 1].max() for n, p in enumerate(lengths))
        blind = max(paths[: k + 1].sum() - rate * costs[k] for k in range(len(paths)))
        got = worth_of_asking(probs, costs, rate)
        assert 0 <= got < (known - blind) / rate + 1e-9
        assert got == pytest.approx(0.4 * (known - blind) / rate, abs=1e-9)


@pytest.mark.parametrize("prob", [0.0, 1.0])
def test_what_is_certain_is_not_worth_asking_about(prob):
    assert worth_of_asking([prob] * 5, CURVE.first(ANY_PASS, 9), 1.0) == pytest.approx(
        0.0, abs=1e-12
    )


def says(n: int) -> list[int]:
    """What the small model would say after the prompt."""
    logits = hashed_logits(N_VOCAB, 8.0)
    said = PROMPT.tolist()
    for _ in range(n):
        said.append(int(logits(tuple(said[-3:])).argmax()))
    return said[len(PROMPT) :]


def judge(own_curve: CostCurve | None = CHEAP, **sampling) -> ModelDrafter:
    small = FakeTarget(hashed_logits(N_VOCAB, 8.0), N_VOCAB, eog=frozenset())
    drafter = drafter_over(small, CURVE, own_curve)
    drafter.begin(Context(PROMPT, sampling=SamplingParams(**sampling)))
    return drafter


def seen(tokens: list[int], prob: float = 0.6) -> Draft:
    return Draft.chain(tokens, REPOSITORY, np.full(len(tokens), prob, np.float32))


def test_a_chain_is_cut_where_the_model_would_say_something_else():
    right = says(6)
    wrong = [*right[:3], (right[3] + 1) % N_VOCAB, *right[4:]]
    kept = judge().judge(PassState(), seen(right), 1.0, 8)
    cut = judge().judge(PassState(), seen(wrong), 1.0, 8)
    assert kept is not None
    assert cut is not None
    assert len(kept) > 3
    assert cut.tokens.tolist() == right[:3]
    assert (kept.probs[:3] == cut.probs).all()
    assert set(cut.sources.tolist()) == {REPOSITORY}


def test_where_the_first_token_is_another_one_the_model_drafts_its_own():
    right = says(8)
    drafter = judge()
    doubtful = seen([(right[0] + 1) % N_VOCAB, *right[1:]], 0.3)
    assert drafter.judge(PassState(), doubtful, 1.0, 8) is not None
    # Once it is known to be right where it is as sure as here.
    for _ in range(200):
        draft = drafter.judge(PassState(), doubtful, 1.0, 8) or NO_DRAFT
        said = tuple(right)
        drafter.observe(np.array(said, np.int32), draft, Verdict(said, tuple(range(len(draft)))))
    draft = drafter.judge(PassState(), doubtful, 1.0, 8)
    assert draft is not None
    assert draft.sources.tolist() == [DRAFT_MODEL] * len(draft)
    assert draft.tokens.tolist() == right[: len(draft)] != []


def test_opinions_that_prove_right_count_for_more():
    right = says(5)
    drafter, chain = judge(), seen(right, 0.5)
    first = drafter.judge(PassState(), chain, 1.0, 8)
    assert first is not None
    for _ in range(100):
        draft = drafter.judge(PassState(), chain, 1.0, 8) or NO_DRAFT
        drafter.observe(NO_TOKENS, draft, Verdict(tuple(right), ()))
    last = drafter.judge(PassState(), chain, 1.0, 8)
    assert last is not None
    assert last.probs[0] > first.probs[0]


@pytest.mark.parametrize(
    "drafter",
    [judge(own_curve=CostCurve({1: 0.2, 9: 0.4})), judge(temperature=0.8, any_seed=True)],
    ids=["dear", "sampled"],
)
def test_who_is_not_asked(drafter):
    assert drafter.judge(PassState(), seen(says(6)), 1.0, 8) is None


def test_a_prompt_that_takes_long_to_read_is_not_read_for_an_opinion():
    small = FakeTarget(hashed_logits(N_VOCAB, 8.0), N_VOCAB, eog=frozenset())
    drafter = drafter_over(small, CURVE, CostCurve({1: 0.01, 2: 0.02}))
    for n_prompt, is_read in ((5, True), (3000, False)):
        drafter.begin(Context(np.arange(n_prompt, dtype=np.int32) % N_VOCAB))
        assert (drafter.judge(PassState(), seen([1, 2, 3]), 1.0, 8) is not None) == is_read


class Judging(ScriptedDrafter):
    """Cheap to ask; says `opinion` of what others see."""

    traits = Traits(takes_time=True, judges=True)

    def is_cheap(self) -> bool:
        return True

    def __init__(self, opinion: Callable[[Draft, int], Draft | None]) -> None:
        super().__init__(lambda emitted, n_max: NO_DRAFT)
        self._opinion = opinion
        self.seen: list[list[int]] = []
        self.rests = False

    def is_due(self) -> bool:
        return not self.rests

    def plan(self, state: PassState, n_max: int) -> Plan:
        return Plan(0, 0.0)

    def judge(self, state: PassState, seen: Draft, rate: float, n_max: int) -> Draft | None:
        self.seen.append(seen.tokens.tolist())
        return self._opinion(seen, n_max)


class Knowing(ScriptedDrafter):
    """Drafts one token, sees three, and continues nothing."""

    traits = Traits(weighs=True)

    def __init__(self) -> None:
        super().__init__(lambda emitted, n_max: Draft.chain([4]))

    def extend(self, state: PassState, given: Draft, n_max: int) -> Draft:
        return NO_DRAFT

    def candidates(self, n_max: int) -> Draft:
        return seen([4, 5, 6])


def chained(opinion) -> tuple[DraftChain, Judging]:
    member = Judging(opinion)
    chain = chain_of([Knowing(), member], 10, 1, CURVE, policy=Policy.LEAVE_OUT)
    chain.begin(Context(NO_TOKENS))
    return chain, member


@pytest.mark.parametrize(
    ("opinion", "drafted"),
    [
        (lambda others, n: seen([4, 5, 6], 0.95), [4, 5, 6]),
        (lambda seen, n: NO_DRAFT, []),
        (lambda seen, n: None, [4]),
        (lambda seen, n: Draft.chain([99]), [4]),  # no such token
        (lambda seen, n: Draft.chain([1] * (n + 1)), [4]),  # too long
        (lambda seen, n: 1 / 0, [4]),
    ],
    ids=["more", "less", "no word", "malformed", "too long", "raising"],
)
def test_a_chain_takes_the_word_of_a_member_that_judges(opinion, drafted):
    chain, member = chained(opinion)
    assert chain.propose(PassState(), 8).tokens.tolist() == drafted
    assert member.seen == [[4, 5, 6]]


def test_members_say_nothing_of_a_pass_that_they_were_not_asked_about():
    """What a member behind the one that judges knows is of the pass before, or of none."""

    class Late(Knowing):
        n_asked = 0

        def extend(self, state: PassState, given: Draft, n_max: int) -> Draft:
            self.n_asked += 1
            return NO_DRAFT

        def candidates(self, n_max: int) -> Draft:
            self.n_asked += 1
            return seen([4, 5, 6])

    for own in ([7], []):
        first, late = Judging(lambda seen, n: seen), Late()
        first._script = lambda emitted, n_max, own=own: Draft.chain(own)
        chain = chain_of([first, late], 10, 1, CURVE)
        chain.begin(Context(NO_TOKENS))
        for _ in range(2):
            assert chain.propose(PassState(), 8).tokens.tolist() == (own or [4])
        assert first.seen == []
        assert late.n_asked == 0


def test_a_member_that_rests_is_not_asked_and_does_not_begin():
    chain, member = chained(lambda seen, n: seen)
    member.rests = True
    assert chain.propose(PassState(), 8).tokens.tolist() == [4]
    chain.observe(np.array([4], np.int32), Draft.chain([4]), Verdict((4,), (0,)))
    assert member.seen == member.contexts == member.observed == []
    member.rests = False
    chain.propose(PassState(np.array([4], np.int32)), 8)
    assert len(member.contexts) == 1
    assert member.observed[0][2].emitted == (4,)  # what was said before it began


def test_the_model_rests_where_it_is_dear_and_would_draft_nothing():
    dear, cheap = judge(own_curve=CostCurve({1: 0.9, 9: 1.8})), judge()
    for drafter, n_asked in ((dear, 2), (cheap, 20)):
        asked = [drafter.is_due() and bool(drafter.plan(ANY_PASS, 4)) for _ in range(20)]
        assert sum(asked) == n_asked


def test_lookups_give_what_they_saw_also_where_it_does_not_pay():
    from tests.unit.test_drafters import TOKENIZER, LiveDocument, new_planner

    document = LiveDocument(TOKENIZER)
    document.update("alpha = beta\nalp", "")
    wide = CostCurve({1: 1.0, 2: 9.0, 16: 99.0})
    lookup = LookupDrafter(lambda path: document, lambda workspace: new_planner(), curve=wide)
    lookup.begin(Context(NO_TOKENS, document.left))
    assert len(lookup.propose(PassState(), 6)) == 0
    assert lookup.candidates(6).tokens.tolist() == list(b"ha = b")
    assert lookup.propose(PassState(np.array([ord("z")], np.int32)), 6) is NO_DRAFT
    assert len(lookup.candidates(6)) == 0
