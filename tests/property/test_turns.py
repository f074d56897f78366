"""A generation that others interrupt anywhere says what it would have said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import Context, Draft, SamplingParams
from codespec.verify.sampling import Sampler
from tests.drafters import OracleDrafter, ScriptedDrafter, combined
from tests.property.test_completer import EOG, N_VOCAB, params, prompts


class Generation:
    """Asked to leave off whenever the next of `asked` says so, again and again."""

    def __init__(
        self,
        completer: Completer,
        prompt: Sequence[int],
        sampling: SamplingParams,
        asked: Sequence[bool],
        max_tokens: int = 24,
    ) -> None:
        self._asked = iter(asked)
        context = Context(np.array(prompt, np.int32), sampling=sampling)
        self.result = None
        self.n_turns = 0
        self._turns = completer.turns(
            context,
            Sampler(sampling),
            OutputLimits(max_tokens),
            paused=lambda has_progressed: next(self._asked, False),
        )

    def turn(self):
        self.n_turns += 1
        try:
            next(self._turns)
        except StopIteration as end:
            self.result = end.value


def completer(target, drafters=()):
    return Completer(target, combined(drafters, N_VOCAB, target.can.max_leaves))


def fake(**options):
    return FakeTarget(hashed_logits(N_VOCAB, 3.0), N_VOCAB, eog=EOG, **options)


def alone(prompt, sampling):
    context = Context(np.array(prompt, np.int32), sampling=sampling)
    return completer(fake()).run(context, Sampler(sampling), OutputLimits(24))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(prompts, params, st.lists(st.booleans())), min_size=2, max_size=4), st.data()
)
def test_whoever_interrupts_whom_all_say_what_they_say_alone(requests, data):
    """On one target, with one chain of drafters, that all of them share."""
    expected = [alone(prompt, sampling) for prompt, sampling, _ in requests]
    drafters = [
        OracleDrafter(expected[0][0]),
        ScriptedDrafter(lambda emitted, n: Draft.chain([1, 2, 3][:n])),
    ]
    shared = completer(fake(), drafters)
    generations = [Generation(shared, *request) for request in requests]
    while left := [g for g in generations if g.result is None]:
        data.draw(st.sampled_from(left)).turn()
    assert [g.result for g in generations] == expected


def test_nothing_is_lost_where_the_context_ends():
    prompt, sampling = [1] * 10, SamplingParams()
    one, other = fake(n_ctx=16), fake(n_ctx=16)
    context = Context(np.array(prompt, np.int32), sampling=sampling)
    expected = completer(one).run(context, Sampler(sampling), OutputLimits(24))
    generation = Generation(completer(other), prompt, sampling, [False, True] * 50)
    while generation.result is None:
        generation.turn()
    assert generation.n_turns > 3
    assert generation.result == expected


def test_drafters_are_told_what_was_said_before():
    prompt, sampling = [3, 1, 4], SamplingParams()
    text, _ = alone(prompt, sampling)
    watcher = ScriptedDrafter(lambda emitted, n: Draft.chain([]))
    generation = Generation(
        completer(fake(), [watcher]), prompt, sampling, [False, False, False, True]
    )
    generation.turn()
    n_before = len(watcher.observed)
    assert generation.result is None
    generation.turn()
    said, draft, _ = watcher.observed[n_before]
    assert said == text[: len(said)]
    assert 0 < len(said) < len(text)
    assert len(draft) == 0
