"""A draft model reads prompts, which takes long: whoever is waited for comes first. One that would
draft nothing rests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codespec.backends.base import CancelledError
from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.guard import GuardPolicy
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import ANY_PASS, Context, PassState, SamplingParams, Tokens
from codespec.verify.sampling import Sampler
from tests.drafters import ScriptedDrafter, combined, drafter_over

CHEAP = CostCurve({1: 1.0, 17: 1.1})


class SlowReader(FakeTarget):
    """Reads a prompt in parts, as the real one does."""

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        n = self.n_cached
        for end in range(50, len(tokens), 50):
            super().prefill(tokens[:end], cancelled)
        return n


def test_a_request_that_is_cancelled_does_not_wait_for_a_draft_model_to_read():
    prompt = np.arange(500, dtype=np.int32) % 20
    small = SlowReader(hashed_logits(20), 20, eog=frozenset())
    drafter = drafter_over(small, CHEAP)
    target = FakeTarget(hashed_logits(20), 20, eog=frozenset())
    completer = Completer(target, combined([drafter], 20))

    def cancelled():
        return small.n_cached > 100

    args = Context(prompt), Sampler(SamplingParams()), OutputLimits(8)
    tokens, finish = completer.run(*args, cancelled=cancelled)
    assert (tokens, finish) == ([], "cancelled")
    assert 100 < small.n_cached < 200
    tokens, finish = completer.run(*args)
    assert (len(tokens), finish) == (8, "length")
    assert small.n_cached > 490


def test_a_member_that_only_says_it_was_cancelled_is_left_out_like_any_that_fails():
    def script(emitted, n_max):
        raise CancelledError

    target = FakeTarget(hashed_logits(20), 20, eog=frozenset())
    completer = Completer(
        target, combined([ScriptedDrafter(script)], 20, policy=GuardPolicy.LEAVE_OUT)
    )
    tokens, _ = completer.run(
        Context(np.array([1], np.int32)), Sampler(SamplingParams()), OutputLimits(8)
    )
    assert len(tokens) == 8


def test_a_draft_model_of_a_shorter_context_is_left_alone_where_it_has_no_room():
    prompt = np.arange(500, dtype=np.int32) % 20
    small = FakeTarget(hashed_logits(20), 20, eog=frozenset(), n_ctx=400)
    drafter = drafter_over(small, CHEAP)
    assert drafter.wants_prompt(Context(prompt[:300]))
    assert not drafter.wants_prompt(Context(prompt))
    chain = combined([drafter], 20, curve=CHEAP)
    said = prompt[:80]
    # It is asked again with the next request, and when it is too late in one, in the next.
    for n, drafts in ((300, True), (500, False), (300, True), (330, True), (300, True)):
        chain.begin(Context(prompt[:n]))
        assert (len(chain.propose(PassState(), 8)) > 0) == drafts
        assert (len(chain.propose(PassState(said), 8)) > 0) == (n == 300)
        n_passes = chain.native_drafting(ANY_PASS, 8)[1]  # for which nobody has to be asked
        assert (n_passes == 0) == (n == 300)


def test_what_does_not_pay_is_planned_ever_less_often_until_the_prompt_is_read():
    prompt = np.arange(500, dtype=np.int32) % 20
    small = FakeTarget(hashed_logits(20), 20, eog=frozenset())
    curve, own = CostCurve({1: 1.0, 17: 1.1}), CostCurve({1: 0.1, 2: 0.2})
    drafter = drafter_over(small, curve, own)
    drafter.begin(Context(prompt))
    due: list[int] = []
    for n_passed in range(600):
        if drafter.is_due():
            due.append(n_passed)
            assert drafter.plan(ANY_PASS, 8)[0] == 0
    waits = np.diff(due).tolist()
    assert len(waits) > 3
    assert waits == sorted(waits)
    assert waits[-1] > 8 * waits[0]
    drafter.read_ahead(Context(prompt), lambda: False)
    assert drafter.is_due()
    drafter.begin(Context(prompt))
    assert drafter.plan(ANY_PASS, 8)[0] > 0


def test_the_model_rests_where_it_is_dear_and_would_draft_nothing():
    for own_ms, n_asked in ((0.9, 2), (0.01, 20)):
        small = FakeTarget(hashed_logits(20, 8.0), 20, eog=frozenset())
        curve, own = CostCurve({1: 1.0, 2: 1.2, 9: 2.6}), CostCurve({1: own_ms, 9: 2 * own_ms})
        drafter = drafter_over(small, curve, own)
        drafter.begin(Context(np.array([1, 2, 3], np.int32)))
        asked = [drafter.is_due() and bool(drafter.plan(ANY_PASS, 4)) for _ in range(20)]
        assert sum(asked) == n_asked
