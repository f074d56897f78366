"""Passes of one width: when they are filled up, and that nobody can tell but by the clock."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.cost.cost_curve import CostCurve
from codespec.cost.padding import padded, padded_width
from codespec.drafters.base import Traits
from codespec.drafters.drafting_gate import DraftingGate
from codespec.drafters.guard import GuardPolicy
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import (
    NO_DRAFT,
    NO_TOKENS,
    Context,
    Draft,
    PassState,
    SamplingParams,
    Trace,
)
from codespec.verify.sampling import Sampler
from tests.drafters import OracleDrafter, ScriptedDrafter, combined, tree
from tests.property.test_completer import CheckedTarget

POINTS = {1: 1.0, 2: 3.0, 5: 3.2, 8: 3.5, 16: 4.0}
N_VOCAB = 12


def curve(steady: dict[int, float] | None = None) -> CostCurve:
    return CostCurve(POINTS, back_ms=2.0, steady={5: 1.5} if steady is None else steady)


class Planning(ScriptedDrafter):
    """Such a drafter says what filling brings."""

    traits = Traits(is_native=True)


class Oracle(OracleDrafter, Planning):
    pass


def test_the_width_with_the_most_usual_tokens_a_millisecond():
    for steady, width in (({5: 1.5}, 5), ({5: 2.5}, 1), ({2: 1.1, 5: 2.1}, 2), ({}, 1)):
        assert padded_width(curve(steady)) == width
    # As real passes say, once they do.
    costs = curve({2: 1.1, 5: 1.5})
    for _ in range(200):
        costs.observe(1, 1.0)
        for _ in range(9):
            costs.observe(5, 4.0)
    assert padded_width(costs) == 2


def test_nothing_is_filled_up_for_who_drafts_nothing():
    for members, gate, width in (
        ([], None, 1),
        ([Planning(lambda e, n: NO_DRAFT)], Resting(), 1),
        ([ScriptedDrafter(lambda e, n: NO_DRAFT)], None, 1),
        ([Planning(lambda e, n: NO_DRAFT)], None, 5),
    ):
        chain = combined(members, N_VOCAB, 1, curve(), gate, pads=True)
        chain.begin(Context(NO_TOKENS))
        assert chain.state(NO_TOKENS, 1, True).width == width


class Resting(DraftingGate):
    def __init__(self) -> None:
        super().__init__(CostCurve(POINTS))
        self._n_left = 9


def test_where_drafting_rests_for_a_while_so_does_filling():
    gate = DraftingGate(CostCurve(POINTS))
    chain = combined([Oracle([1, 2, 3])], N_VOCAB, 1, curve(), gate, pads=True)
    chain.begin(Context(NO_TOKENS))
    assert chain.state(NO_TOKENS, 1, True).width == 5
    gate._n_left = 3
    assert chain.state(NO_TOKENS, 1, True).width == 1


def test_a_chain_that_does_not_fill_takes_passes_as_they_are():
    chain = combined([OracleDrafter([1, 2, 3])], N_VOCAB, 1, curve())
    chain.begin(Context(NO_TOKENS))
    state = chain.state(NO_TOKENS, 1, True)
    assert state.width == 1
    assert len(padded(Draft.chain([1, 2]), state, 60)) == 2


def test_what_was_typed_is_part_of_a_filled_pass():
    """So that the first pass of a request is like those after it."""
    costs = curve({5: 1.01})
    rows = costs.table_of(5)
    for n_tail, n_first in ((1, 1), (3, 3), (5, 5), (6, 1), (40, 1)):
        state = PassState(NO_TOKENS, n_tail, 5)
        assert costs.n_tail(state) == n_first
        np.testing.assert_allclose(costs.first(state, 4), rows[n_first - 1 : n_first + 3])


def test_what_is_filled_up():
    draft, branches = Draft.chain([3, 4]), tree([3, 4], [-1, -1])
    assert padded(draft, PassState(), 60) is draft
    for asked, n_tail, n_room, n in (
        (draft, 1, 60, 4),
        (NO_DRAFT, 1, 60, 4),
        (draft, 2, 60, 3),
        (draft, 9, 60, 2),  # the pass is wider already
        (draft, 1, 3, 2),  # the context ends
        (Draft.chain([1] * 7), 1, 60, 7),
        (branches, 1, 60, 2),
    ):
        wide = padded(asked, PassState(NO_TOKENS, n_tail, 5), n_room)
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
    def run(drafters, costs):
        target = CheckedTarget(n_ctx=n_ctx)
        # Guesses may be longer than asked for.
        chain = combined(drafters, N_VOCAB, 1, costs, pads=True, policy=GuardPolicy.LEAVE_OUT)
        trace = Trace()
        context = Context(np.array(prompt, np.int32), sampling=sampling)
        out, finish = Completer(target, chain).run(
            context, Sampler(sampling), OutputLimits(n_tokens), trace=trace
        )
        assert target.cached == (prompt + out)[: target.n_cached]
        return (out, finish), trace

    rng = np.random.default_rng(seed)
    plain, _ = run([], CostCurve({1: 1.0}))
    costs = curve({width: 1.01})
    guesses = Planning(lambda e, n: Draft.chain(rng.integers(0, N_VOCAB, rng.integers(9)).tolist()))
    oracle = Oracle(plain[0])
    for drafter in (guesses, oracle):
        out, trace = run([drafter], costs)
        assert out == plain
        assert trace.n_drafted == sum(trace.pass_depth)
        n_before = len(prompt)
        for taken, n_accepted in zip(trace.pass_width, trace.pass_accepted, strict=True):
            assert taken >= width or n_before + width > n_ctx
            n_before += n_accepted + 1


def test_fake_passes_over_filled_drafts_read_no_further():
    """Tokens behind a draft are dropped even if they are the target's."""
    law = hashed_logits(N_VOCAB, 3.0)
    target = FakeTarget(law, N_VOCAB)
    costs = curve({8: 1.01})
    chain = combined([Planning(lambda e, n: NO_DRAFT)], N_VOCAB, 1, costs, pads=True)
    trace = Trace()
    context = Context(np.zeros(4, np.int32))
    Completer(target, chain).run(context, Sampler(SamplingParams()), OutputLimits(20), trace=trace)
    assert set(trace.pass_width) == {8}
    assert set(trace.pass_accepted) == {0}
