"""When asking for drafts is given up, and taken up again."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from codespec.cost.cost_curve import CostCurve
from codespec.drafters.base import Drafter, Traits
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.drafting_gate import DraftingGate
from codespec.types import NO_DRAFT, NO_TOKENS, Context, Draft, PassState, Tokens, Verdict
from tests.drafters import combined

CURVE = CostCurve({1: 1.0, 2: 1.5, 9: 4.0})


class Counting(Drafter):
    """Drafts the same token each time."""

    name = "counting"

    def __init__(self) -> None:
        self.n_asked = 0
        self.has_begun = False
        self.told: list[int] = []

    def begin(self, context: Context) -> None:
        self.has_begun, self.told = True, []

    def propose(self, state: PassState, n_max: int) -> Draft:
        self.n_asked += 1
        return Draft.chain([7], probs=np.ones(1, np.float32))

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        self.told += verdict.emitted


def passes(gate: DraftingGate, n: int, took_ms: float, n_drafted: int, n_accepted: int) -> int:
    """In how many of n passes was asked."""
    n_asked = 0
    for _ in range(n):
        if gate.admits():
            n_asked += 1
            gate.learn(took_ms, n_drafted, n_accepted)
    return n_asked


def test_what_costs_much_and_brings_nothing_is_tried_ever_less_often():
    gate = DraftingGate(CURVE)
    seldom = [passes(gate, 300, took_ms=0.1, n_drafted=0, n_accepted=0) for _ in range(4)]
    assert 20 < seldom[0] < 60
    assert passes(gate, 2630, took_ms=0.1, n_drafted=0, n_accepted=0) == 80


def test_drafts_that_are_rejected_are_a_loss():
    gate = DraftingGate(CURVE)
    passes(gate, 1200, took_ms=0.021, n_drafted=1, n_accepted=0)
    assert passes(gate, 2630, took_ms=0.021, n_drafted=1, n_accepted=0) == 80


def test_what_pays_is_asked_in_each_pass_and_soon_again():
    gate = DraftingGate(CURVE)
    assert passes(gate, 100, took_ms=0.1, n_drafted=1, n_accepted=1) == 100
    assert passes(gate, 1000, took_ms=0.1, n_drafted=0, n_accepted=0) < 250
    passes(gate, 264, took_ms=0.1, n_drafted=8, n_accepted=8)  # one trial among them
    assert passes(gate, 50, took_ms=0.1, n_drafted=1, n_accepted=1) == 50


def test_a_run_of_misses_does_not_end_what_pays_in_the_mean():
    """One asking in six saves nearly two passes: 0.3 each, for 0.1."""
    rng = np.random.default_rng(3)
    gate, n_asked = DraftingGate(CURVE), 0
    for _ in range(4000):
        n = 3 if rng.random() < 1 / 6 else 0
        n_asked += passes(gate, 1, took_ms=0.1, n_drafted=n, n_accepted=n)
    assert n_asked > 3800


def test_what_costs_next_to_nothing_is_always_asked():
    assert passes(DraftingGate(CURVE), 500, took_ms=0.019, n_drafted=0, n_accepted=0) == 500


def test_one_interruption_changes_nothing():
    gate = DraftingGate(CURVE)
    passes(gate, 50, took_ms=0.01, n_drafted=0, n_accepted=0)
    passes(gate, 1, took_ms=500.0, n_drafted=0, n_accepted=0)
    assert passes(gate, 50, took_ms=0.01, n_drafted=0, n_accepted=0) == 50


def test_a_slow_first_asking_changes_nothing():
    """It opens the index: 500 passes of time, of which no later asking takes any."""
    gate = DraftingGate(CURVE)
    passes(gate, 1, took_ms=500.0, n_drafted=0, n_accepted=0)
    assert passes(gate, 300, took_ms=0.03, n_drafted=1, n_accepted=1) == 300


def test_what_is_dear_from_the_first_asking_on_is_known_soon():
    gate = DraftingGate(CURVE)
    assert passes(gate, 300, took_ms=500.0, n_drafted=1, n_accepted=1) < 60


def given_up(member: Counting) -> CombinedDrafter:
    """A chain at the beginning of a request, when asking has not paid."""
    gate = DraftingGate(CURVE)
    passes(gate, 100, took_ms=0.1, n_drafted=0, n_accepted=0)
    while gate.admits():
        gate.learn(0.1, 0, 0)
    chain = combined([member], n_vocab=10, gate=gate)
    chain.begin(Context(NO_TOKENS))
    return chain


def test_a_chain_asks_nobody_where_it_does_not_pay():
    member = Counting()
    chain = given_up(member)
    draft = chain.propose(PassState(), 4)
    chain.observe(NO_TOKENS, draft, Verdict((3,), ()))
    assert draft is NO_DRAFT
    assert member.n_asked == 0
    assert not member.has_begun


def test_a_member_asked_late_in_a_request_knows_what_was_said():
    member = Counting()
    chain = given_up(member)
    said: list[int] = []
    known: list[int] = []
    while not member.has_begun:
        draft = chain.propose(PassState(np.array(said, np.int32)), 4)
        known = list(member.told)
        said.append(len(said) % 10)
        chain.observe(np.array(said, np.int32), draft, Verdict((said[-1],), ()))
    assert len(said) > 1
    assert known == said[:-1]
    assert member.told == said


class Noting(DraftingGate):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(CURVE)
        self.told: list[tuple[int, int]] = []
        self.took_ms: list[float] = []

    def learn(self, took_ms: float, n_drafted: int, n_accepted: int, width: int = 1) -> None:
        assert took_ms > 0
        self.told.append((n_drafted, n_accepted))
        self.took_ms.append(took_ms)


def test_a_chain_tells_what_became_of_its_drafts_and_nothing_without_members():
    for members, told in (([Counting()], [(1, 1), (1, 0)]), ([], [])):
        gate = Noting()
        chain = combined(members, n_vocab=10, gate=gate)
        chain.begin(Context(NO_TOKENS))
        for verdict in (Verdict((7, 3), (0,)), Verdict((3,), ())):
            draft = chain.propose(PassState(), 4)
            chain.observe(NO_TOKENS, draft, verdict)
        assert gate.told == told


def test_a_request_that_is_gone_on_with_teaches_nothing_by_what_it_said_before():
    gate = Noting()
    chain = combined([Counting()], n_vocab=10, gate=gate)
    for _ in range(2):
        chain.begin(Context(NO_TOKENS))
        chain.observe(NO_TOKENS, NO_DRAFT, Verdict((7, 3), ()))
        chain.observe(NO_TOKENS, chain.propose(PassState(), 4), Verdict((7, 3), (0,)))
    assert gate.told == [(1, 1), (1, 1)]


class Taking(Counting):
    """Takes time by a clock of its own; drafts, or does not."""

    def __init__(self, clock: SimpleNamespace, took_ms: float, draft: Draft) -> None:
        super().__init__()
        self._clock, self._took_ms, self._draft = clock, took_ms, draft

    def propose(self, state: PassState, n_max: int) -> Draft:
        self._clock.now += self._took_ms / 1e3
        return self._draft


def test_what_dear_members_take_and_draft_is_no_matter_of_the_others(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(
        "codespec.drafters.combined.time", SimpleNamespace(perf_counter=lambda: clock.now)
    )
    gate = Noting()
    lookup = Taking(clock, 1.0, NO_DRAFT)
    model = Taking(clock, 50.0, Draft.chain([7]))
    model.traits = Traits(takes_time=True)
    chain = combined([lookup, model], n_vocab=10, gate=gate)
    chain.begin(Context(NO_TOKENS))
    draft = chain.propose(PassState(), 4)
    chain.observe(NO_TOKENS, draft, Verdict((3,), ()))
    assert draft.tokens.tolist() == [7]
    assert gate.told == [(0, 0)]
    assert gate.took_ms == pytest.approx([1.0])
