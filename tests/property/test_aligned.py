"""Whatever text is said to be rewritten, the output is the plain output, and the alignment a
distribution over places of that text."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.drafters.aligned import AlignedDrafter, OldText
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.planners import Planners
from codespec.types import NO_TOKENS, Context, PassState, Tokens
from tests.drafters import ScriptedDrafter
from tests.property.test_completer import N_VOCAB, params, prompts, run

KINDS = np.arange(N_VOCAB, dtype=np.uint8)
CURVES = [FLAT, CostCurve({1: 1.0, 8: 1.5, 64: 3.0}), CostCurve({1: 1.0, 2: 1.2}, back_ms=0.5)]

# Few ids, so that places are hard to tell apart; and ids that no vocabulary of this size has.
hostile = st.one_of(
    st.lists(st.integers(0, N_VOCAB - 1), max_size=60),
    st.lists(st.integers(0, 1), max_size=60),
    st.lists(st.sampled_from([0, 5, N_VOCAB, 2**31 - 1]), max_size=20),
)
options = st.sampled_from([{}, {"rolls_back": False, "max_leaves": 1, "max_draft": 5}])


def aligned(curve: CostCurve = FLAT, max_leaves: int = 4) -> AlignedDrafter:
    return AlignedDrafter(curve, max_leaves, Planners(KINDS))


@settings(max_examples=200, deadline=None)
@given(prompts, params, hostile, st.sampled_from(CURVES), options)
def test_no_old_text_changes_the_output(prompt, sampling, old, curve, options):
    plain = run([], prompt, sampling)[:2]
    leaves = options.get("max_leaves", 4)
    other = ScriptedDrafter()
    for members in ([aligned(curve, leaves)], [other, aligned(curve, leaves)]):
        drafted = run(members, prompt, sampling, policy=GuardPolicy.LEAVE_OUT, old=old, **options)
        assert drafted[:2] == plain


@settings(max_examples=200, deadline=None)
@given(prompts, params, st.data())
def test_what_is_rewritten_is_drafted(prompt, sampling, data):
    """Old texts that are the output with some tokens changed, left out, or put in."""
    plain, finish, plain_target = run([], prompt, sampling)
    old: list[int] = []
    for token in plain:
        old += data.draw(st.sampled_from([[token]] * 5 + [[], [token, token], [3]]))
    drafted = run([aligned()], prompt, sampling, old=old)
    assert drafted[:2] == (plain, finish)
    if old == plain and plain:
        assert drafted[2].n_passes < plain_target.n_passes or len(plain) < 2


@settings(max_examples=200, deadline=None)
@given(hostile, hostile, st.lists(st.integers(0, 60), max_size=4), st.integers(0, 20))
def test_an_alignment_is_a_distribution_over_places(old, output, cuts, n_max):
    at_once, in_parts = OldText(ids(old)), OldText(ids(old))
    at_once.follow(ids(output))
    for cut in sorted(cuts):
        in_parts.follow(ids(output[:cut]))
    in_parts.follow(ids(output))
    assert in_parts.places == at_once.places
    assert np.isclose(sum(at_once.places.values()), 1.0)
    assert all(0 <= place <= len(old) for place in at_once.places)
    for columns in at_once.proposals(n_max):
        n = columns.shape[1]
        assert 0 < n <= n_max
        assert any(columns[0].tolist() == old[at : at + n] for at in at_once.places)
        assert (columns[1] >= 1).all()
        assert (columns[1] <= columns[2]).all()


@settings(max_examples=50, deadline=None)
@given(hostile, hostile)
def test_a_request_that_is_taken_up_again_drafts_the_same(old, output):
    drafter, context = aligned(), Context(NO_TOKENS, old=ids(old))
    drafts = []
    for steps in ([output[:3], output], [output]):
        drafter.begin(context)
        drafts.append([drafter.propose(PassState(ids(step)), 8).tokens.tolist() for step in steps])
    assert drafts[0][-1] == drafts[1][-1]


def ids(tokens: list[int]) -> Tokens:
    return np.array(tokens, np.int32)
