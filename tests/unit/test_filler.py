"""Passes of one width: when they are filled up, and that nobody can tell but by the clock."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.drafters.base import Traits
from codespec.drafters.cost import CostCurve
from codespec.drafters.filler import Filler, filled
from codespec.drafters.guard import Policy
from codespec.drafters.worth import Worth
from codespec.engine.completer import Completer
from codespec.engine.output import Limits
from codespec.native import Planner, Sources, SuffixAutomaton
from codespec.sampling import Sampler
from codespec.types import (
    NO_DRAFT,
    NO_TOKENS,
    Context,
    Draft,
    PassState,
    SamplingParams,
    Trace,
    Verdict,
)
from tests.drafters import OracleDrafter, ScriptedDrafter, chain_of, tree
from tests.property.test_completer import CheckedTarget
from tests.unit.test_drafters import TOKENIZER, drafter_for, new_planner

POINTS = {1: 1.0, 2: 3.0, 5: 3.2, 8: 3.5, 16: 4.0}
N_VOCAB = 12


def curve(steady: dict[int, float] | None = None) -> CostCurve:
    return CostCurve(POINTS, back_ms=2.0, steady={5: 1.5} if steady is None else steady)


class Planning(ScriptedDrafter):
    """Such a drafter says what filling brings."""

    traits = Traits(is_native=True)


class Oracle(OracleDrafter, Planning):
    pass


class Planned:
    """A planner of which only the comparison is asked: what each width would have brought."""

    def __init__(self, n_plans: int, tokens: list[float], ms: list[float]) -> None:
        self._found = n_plans, np.array(tokens), np.array(ms)
        self.ways = np.zeros(0)

    def set_ways(self, costs: np.ndarray) -> None:
        self.ways = costs

    def compared(self):
        return self._found


def planned(n_plans: int, tokens: list[float], ms: list[float]) -> Planner:
    return cast("Planner", Planned(n_plans, tokens, ms))


def watching(curve: CostCurve) -> Filler:
    filler = Filler(curve)
    filler.watch(planned(0, [], []))
    return filler


def test_what_is_usual_decides_until_more_is_known():
    for steady, width in (({5: 1.5}, 5), ({5: 2.0}, 1), ({2: 1.1, 5: 1.9}, 2), ({}, 1)):
        costs = curve(steady)
        filler = Filler(costs)
        filler.begin(True)
        assert filler.width == width
        filler.begin(False)
        assert filler.width == 1


def test_the_way_that_brings_more_is_gone():
    costs = curve()
    filler = watching(costs)
    filler.begin(True)
    filler.learn(planned(900, [920.0, 950.0], [900.0, 1350.0]))
    filler.begin(True)
    assert filler.width == 1
    filler.learn(planned(900, [920.0, 1500.0], [900.0, 1350.0]))
    filler.begin(True)
    assert filler.width == 5


def test_a_request_goes_on_as_it_began_unless_much_is_to_be_gained():
    costs = curve()
    filler = watching(costs)
    filler.begin(True)
    assert filler.width == 5
    filler.learn(planned(900, [900.0, 1300.0], [900.0, 1350.0]))  # 4 % more without
    filler.step(True)
    assert filler.width == 5
    filler.begin(True)
    assert filler.width == 1
    filler.learn(planned(20, [20.0, 9000.0], [20.0, 30.0]))
    filler.step(True)  # a choice holds for some passes
    assert filler.width == 1
    filler.learn(planned(20, [20.0, 9000.0], [20.0, 30.0]))
    filler.step(True)
    assert filler.width == 5


def test_nothing_is_filled_up_for_who_drafts_nothing():
    for members, worth, width in (
        ([], None, 1),
        ([Planning(lambda e, n: NO_DRAFT)], Resting(), 1),
        ([ScriptedDrafter(lambda e, n: NO_DRAFT)], None, 1),
        ([Planning(lambda e, n: NO_DRAFT)], None, 5),
    ):
        costs = curve()
        filler = watching(costs)
        filler.width = 5
        chain = chain_of(members, N_VOCAB, 1, costs, worth, filler)
        chain.begin(Context(NO_TOKENS))
        assert chain.state(NO_TOKENS, 1, True).width == width


class Resting(Worth):
    def __init__(self) -> None:
        super().__init__(CostCurve(POINTS))
        self._n_left = 9


def test_where_drafting_rests_for_a_while_so_does_filling():
    costs, worth = curve(), Worth(CostCurve(POINTS))
    filler = watching(costs)
    chain = chain_of([Oracle([1, 2, 3])], N_VOCAB, 1, costs, worth, filler)
    chain.begin(Context(NO_TOKENS))
    filler.width = 5
    assert chain.state(NO_TOKENS, 1, True).width == 5
    worth._n_left = 3
    assert chain.state(NO_TOKENS, 1, True).width == 1


def test_a_chain_without_a_filler_takes_passes_as_they_are():
    chain = chain_of([OracleDrafter([1, 2, 3])], N_VOCAB, 1, curve())
    chain.begin(Context(NO_TOKENS))
    state = chain.state(NO_TOKENS, 1, True)
    assert state.width == 1
    assert len(filled(Draft.chain([1, 2]), state, 60)) == 2


def test_what_was_typed_is_part_of_a_filled_pass():
    """So that the first pass of a request is like those after it."""
    costs = curve({5: 1.01})
    rows = costs.tables[1]
    for n_tail, n_first in ((1, 1), (3, 3), (5, 5), (6, 1), (40, 1)):
        state = PassState(NO_TOKENS, n_tail, 5)
        assert costs.n_tail(state) == n_first
        np.testing.assert_allclose(costs.first(state, 4), rows[n_first - 1 : n_first + 3])


def test_what_is_filled_up():
    draft, branches = Draft.chain([3, 4]), tree([3, 4], [-1, -1])
    assert filled(draft, PassState(), 60) is draft
    for asked, n_tail, n_room, n in (
        (draft, 1, 60, 4),
        (NO_DRAFT, 1, 60, 4),
        (draft, 2, 60, 3),
        (draft, 9, 60, 2),  # the pass is wider already
        (draft, 1, 3, 2),  # the context ends
        (Draft.chain([1] * 7), 1, 60, 7),
        (branches, 1, 60, 2),
    ):
        wide = filled(asked, PassState(NO_TOKENS, n_tail, 5), n_room)
        assert len(wide) == n
        assert wide.tokens[: len(asked)].tolist() == asked.tokens.tolist()


@given(
    seed=st.integers(0, 1000),
    prompt=st.lists(st.integers(0, N_VOCAB - 2), min_size=1, max_size=12),
    sampling=st.builds(
        SamplingParams, temperature=st.sampled_from([0.0, 1.0]), seed=st.integers(0, 99)
    ),
    n_ctx=st.integers(14, 60),
    width=st.sampled_from([2, 5, 8]),
    n_tokens=st.integers(1, 30),
)
@settings(deadline=None)
def test_the_output_is_the_plain_output(seed, prompt, sampling, n_ctx, width, n_tokens):
    def run(drafters, costs, filler):
        target = CheckedTarget(n_ctx=n_ctx)
        # Guesses may be longer than asked for.
        chain = chain_of(drafters, N_VOCAB, 1, costs, filler=filler, policy=Policy.LEAVE_OUT)
        trace = Trace()
        context = Context(np.array(prompt, np.int32), sampling=sampling)
        out, finish = Completer(target, chain).run(
            context, Sampler(sampling), Limits(n_tokens), trace=trace
        )
        assert target.cached == (prompt + out)[: target.n_cached]
        return (out, finish), trace

    rng = np.random.default_rng(seed)
    plain, _ = run([], CostCurve({1: 1.0}), None)
    costs = curve({width: 1.01})
    filler = watching(costs)
    guesses = Planning(lambda e, n: Draft.chain(rng.integers(0, N_VOCAB, rng.integers(9)).tolist()))
    oracle = Oracle(plain[0])
    for drafter in (guesses, oracle):
        out, trace = run([drafter], costs, filler)
        assert out == plain
        assert trace.n_drafted == sum(trace.pass_depth)
        n_before = len(prompt)
        for taken, n_accepted in zip(trace.pass_width, trace.pass_accepted, strict=True):
            assert taken >= width or n_before + width > n_ctx
            n_before += n_accepted + 1


def test_a_planner_says_what_each_way_would_have_brought():
    planner = Planner(np.zeros(9, np.uint8), 4)
    text = np.array([1, 2, 3, 4, 5, 6, 7, 8], np.int32)
    automaton = SuffixAutomaton()
    automaton.extend(np.tile(text, 6))
    costs = np.array([[1.0, 9.0, 9.0, 9.0], [1.5, 1.5, 1.5, 9.0]])
    planner.begin(text, NO_TOKENS)
    planner.set_ways(costs)
    assert planner.compared()[0] == 0
    sources = Sources(text)
    sources.add_automata(2, [automaton])
    sources.ask(NO_TOKENS, NO_TOKENS, 3)
    args = NO_TOKENS, np.zeros(0, np.float32), 3
    planner.plan(sources, 3, 1, costs[0], *args)
    planner.compare(3)
    n_plans, tokens, ms = planner.compared()
    assert n_plans == 1
    assert tokens[0] == 1.0  # nothing drafted pays
    assert 1.5 < tokens[1] <= 3.0  # two of the three
    assert ms.tolist() == [1.0, 1.5]
    planner.compare(1)
    assert 1.0 < planner.compared()[1][1] <= 2.0
    planner.learn([1], 1)
    planner.compare(3)  # where nobody says anything
    assert [x.tolist() for x in planner.compared()[1:]] == [[1.0, 1.0], [1.0, 1.5]]
    for wrong in (np.zeros((1, 3)), np.array([[1.0, -1.0]]), np.array([[np.nan]])):
        with pytest.raises(ValueError, match="positive"):
            planner.set_ways(wrong)


def test_text_that_repeats_is_worth_a_fixed_width_and_new_text_is_not():
    """The product's drafter, whose own plans say so."""
    rng = np.random.default_rng(3)
    phrase, strange = (bytes(rng.integers(97, 123, n).tolist()).decode() for n in (40, 480))
    for text, is_wide in ((phrase * 12, True), (strange, False)):
        costs, planner = curve(), new_planner()
        filler = Filler(costs)
        for start in range(80, 480, 40):
            drafter = drafter_for(text[:start], planner=planner, curve=costs, filler=filler)
            chain = chain_of([drafter], 256, 1, costs, filler=filler)
            left, said = (TOKENIZER.encode(t) for t in (text[:start], text[start : start + 40]))
            chain.begin(Context(left, left, path="/w/a.py"))
            for n in range(len(said)):
                draft = chain.propose(chain.state(said[:n], 1, True), 16)
                verdict = Verdict((int(said[n]),), ())
                chain.observe(said[: n + 1], draft, verdict)
        assert (filler.width == 5) == is_wide


def test_fake_passes_over_filled_drafts_read_no_further():
    """What stands behind a draft is dropped even where it is what the target says."""
    law = hashed_logits(N_VOCAB, 3.0)
    target = FakeTarget(law, N_VOCAB)
    costs = curve({8: 1.01})
    filler = watching(costs)
    chain = chain_of([Planning(lambda e, n: NO_DRAFT)], N_VOCAB, 1, costs, filler=filler)
    trace = Trace()
    context = Context(np.zeros(4, np.int32))
    Completer(target, chain).run(context, Sampler(SamplingParams()), Limits(20), trace=trace)
    assert set(trace.pass_width) == {8}
    assert set(trace.pass_accepted) == {0}
