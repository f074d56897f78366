"""Drafting in a stretch of native passes: the drafters that may, for how long, and the report to
them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer, FakeTarget, hashed_logits
from codespec.backends.llama.loader import lib
from codespec.context.healing import HealingMask, vocabulary_of
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.base import Drafter, Plan, Traits
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.drafting_gate import DraftingGate
from codespec.engine.candidates import OtherFirstToken
from codespec.engine.completer import Completer
from codespec.engine.generation import Generation
from codespec.engine.output import OutputLimits
from codespec.native import Drafting, Stretch
from codespec.requests import CompletionRequest
from codespec.suggest import Judge, Place, UnitStop, shape_at
from codespec.suggest.until import Until
from codespec.types import ANY_PASS, NO_TOKENS, Context, Draft, PassState, SamplingParams, Trace
from codespec.verify.sampling import Sampler
from tests.drafters import ScriptedDrafter, combined
from tests.property.test_stretch import N_VOCAB, Model, drafting
from tests.unit.test_drafters import drafter_for

TOKENIZER = ByteTokenizer()
CURVE = CostCurve({1: 1.0, 2: 1.5, 9: 4.0})
EMITTED = [1, 2, 3]


class Resting(ScriptedDrafter):
    """A costly member."""

    traits = Traits(takes_time=True)

    def __init__(self, n_left: int) -> None:
        super().__init__(lambda emitted, n: Draft.chain([4]))
        self.n_left = n_left

    def is_due(self) -> bool:
        return not self.n_left

    def n_rest(self) -> int:
        return self.n_left

    def rested(self, n_passes: int) -> None:
        self.n_left -= n_passes

    def plan(self, state: PassState, n_max: int) -> Plan:
        return Plan(1, 0.0)


class Native(ScriptedDrafter):
    traits = Traits(is_native=True)

    def __init__(self, can_now: bool = True) -> None:
        super().__init__(lambda emitted, n: Draft.chain([4]))
        self._can_now = can_now

    def native(self, state: PassState, n_max: int) -> Drafting | None:
        return drafting([1], [], n_max) if self._can_now else None


def begun(*members: Drafter, gate: DraftingGate | None = None) -> CombinedDrafter:
    chain = combined(members, 100, 1, CURVE, gate)
    chain.begin(Context(NO_TOKENS))
    return chain


def stretch_of(n_passes: int, who=None) -> Stretch:
    return Model([1]).stretch(who, [], 2, n_passes=n_passes, n_draft=0)


def test_for_as_long_as_nobody_else_has_to_be_asked():
    for members, drafts, n_passes in (
        ([], False, 256),
        ([Native()], True, 256),
        ([Native(), Resting(5)], True, 5),
        ([Resting(7), Native(), Resting(5)], True, 5),
        ([Resting(7)], False, 7),
        ([Native(), Resting(0)], True, 0),
        ([Native(False)], False, 0),
        ([Native(), ScriptedDrafter(lambda emitted, n: Draft.chain([4]))], False, 0),
        ([Native(), Native()], False, 0),
    ):
        found, n = begun(*members).native_drafting(ANY_PASS, 4)
        assert n == n_passes
        if n:
            assert (found is not None) == drafts


def test_what_does_not_pay_is_not_asked_in_stretches_either():
    gate = DraftingGate(CURVE)
    while gate.is_open:
        gate.learn(9.0, 0, 0)
    n_rest = gate.n_rest
    native = Native()
    chain = begun(native, Resting(1), gate=gate)
    assert chain.native_drafting(ANY_PASS, 4) == (None, n_rest)
    done = stretch_of(1)
    chain.observe_stretch(done.tokens, done)
    assert gate.n_rest == n_rest - 1
    assert gate.is_open


def test_members_are_told_what_they_did_not_draft():
    native, resting, waiting = Native(), Resting(9), Resting(9)
    chain = combined([native, resting, waiting], 100, 1, CURVE, DraftingGate(CURVE))
    chain.begin(Context(NO_TOKENS))
    resting.n_left = 0
    chain.propose(PassState(), 4)  # it begins
    resting.n_left = 9
    found, n_passes = chain.native_drafting(ANY_PASS, 4)
    done = stretch_of(n_passes, found)
    said = [*EMITTED, *done.tokens]
    chain.observe_stretch(said, done)
    assert len(done.pass_ms) == 9
    assert native.observed == [], "what drafts natively learns there"
    ((emitted, draft, verdict),) = resting.observed
    assert emitted == said
    assert len(draft) == 0
    assert list(verdict.emitted) == done.tokens
    assert resting.n_left == 0
    assert waiting.observed == []


def test_asking_is_learned_from(monkeypatch):
    asked = []

    def learn_all(self, took_ms, n_drafted, n_accepted, width=1):
        asked.extend(zip(n_drafted, n_accepted, strict=True))

    monkeypatch.setattr(DraftingGate, "learn_all", learn_all)
    chain = begun(Native(), gate=DraftingGate(CURVE))
    found, _ = chain.native_drafting(ANY_PASS, 4)
    done = stretch_of(3, found)
    chain.observe_stretch(EMITTED, done)
    assert asked == [(n, m) for n, m in zip(done.n_drafted, done.n_accepted, strict=True)]
    assert len(asked) == 3
    nobody = begun(gate=DraftingGate(CURVE))
    nobody.native_drafting(ANY_PASS, 4)
    nobody.observe_stretch(EMITTED, stretch_of(3))
    assert len(asked) == 3, "nobody was asked"


def test_lookups_draft_alone_once_the_cursor_does_not_matter():
    assert drafter_for("abcabc").native(ANY_PASS, 4) is not None
    assert drafter_for("abcabc", max_leaves=2).native(ANY_PASS, 4) is None, "of a tree"


def test_the_output_can_end_only_with_a_line():
    place = Place("def f():\n    ", "", "python")
    stop = UnitStop(TOKENIZER, shape_at(place), place)
    said = ""
    for more, is_in_line in (
        ("ret", True),
        ("urn 1", True),
        ("\n", False),
        ("  ", False),
        ("  x", True),
        ("\n", False),
    ):
        said += more
        stop(TOKENIZER.encode(said).tolist())
        assert stop.is_in_line == is_in_line, said


@pytest.mark.parametrize(
    ("until", "is_verbatim", "is_in_line"),
    [
        (Until(), False, True),
        (Until(), True, True),
        (Until(stops=("x",)), True, False),
        (Until(min_indent=4), False, False),
        (Until(max_line_ms=1.0), True, False),
    ],
)
def test_what_is_asked_after_each_token_is_asked(until, is_verbatim, is_in_line):
    place = Place("x = ", "", "python")
    shape = shape_at(place)
    stop = UnitStop(TOKENIZER, shape, place)
    made = Generation(
        CompletionRequest("x = "),
        Context(NO_TOKENS),
        place,
        shape,
        stop,
        Judge(place),
        Trace(),
        until=until,
        is_verbatim=is_verbatim,
    )
    assert made.is_in_line == is_in_line


def test_only_likeliest_tokens():
    vocabulary = vocabulary_of(TOKENIZER)
    assert Sampler(SamplingParams()).takes_likeliest([])
    assert not Sampler(SamplingParams(temperature=0.1)).takes_likeliest([])
    assert not Sampler(SamplingParams(repetition_penalty=1.1)).takes_likeliest([])
    healing = HealingMask(b"re", vocabulary, TOKENIZER)
    for mask in (healing, OtherFirstToken(frozenset({9}), TOKENIZER.n_vocab, healing)):
        sampler = Sampler(SamplingParams(), mask)
        found = [sampler.takes_likeliest(TOKENIZER.encode(said).tolist()) for said in ("", "r")]
        assert found == [False, False]
        assert sampler.takes_likeliest(TOKENIZER.encode("re").tolist())
    other = OtherFirstToken(frozenset({9}), TOKENIZER.n_vocab, None)
    assert [other.is_done(said) for said in ([], [3])] == [False, True]


def test_a_stretch_that_came_too_late_for_a_pass_is_no_harm():
    class Late:
        n_asked = 0

        def run(self, *args: object) -> Stretch | None:
            self.n_asked += 1
            return stretch_of(0) if self.n_asked < 3 else None

    target = FakeTarget(hashed_logits(20), 20, eog=frozenset())
    late = Late()
    completer = Completer(target, combined([], 20), stretches=late)  # pyright: ignore[reportArgumentType]
    prompt = np.array([1, 2], np.int32)
    trace = Trace()
    args = Context(prompt), Sampler(SamplingParams())
    tokens, finish = completer.run(*args, OutputLimits(4), trace=trace)
    assert (len(tokens), finish) == (4, "length")
    assert late.n_asked > 2
    assert trace.first_token_ms > 0
    late.n_asked = 0
    _, finish = completer.run(*args, OutputLimits(0))
    assert finish == "length"
    assert late.n_asked == 0, "nothing is left to say"


def test_who_failed_natively_is_left_out():
    class Broken:
        tokens, widths, n_drafted, n_accepted, draft_ms = [1], [1], [0], [0], [0.1]
        by_source = ()
        is_damaged = True

    chain = begun(Native())
    assert chain.native_drafting(ANY_PASS, 4)[0] is not None
    chain.observe_stretch(EMITTED, Broken())  # pyright: ignore[reportArgumentType]
    assert len(chain.propose(PassState(np.array(EMITTED, np.int32)), 4)) == 0
    assert chain.native_drafting(ANY_PASS, 4) == (None, 256)


def test_the_batch_is_llama_cpps():
    """Its layout is written down once more in native code."""
    fields = [name for name, _ in lib.llama_batch._fields_]
    assert fields == ["n_tokens", "token", "embd", "pos", "n_seq_id", "seq_id", "logits"]
    assert ctypes.sizeof(lib.llama_batch) == 8 + 6 * ctypes.sizeof(ctypes.c_void_p)


class Watching(ScriptedDrafter):
    """Sees the state of each pass."""

    def __init__(self, drafts: list[list[int]]) -> None:
        super().__init__(lambda emitted, n: Draft.chain(drafts[min(len(emitted), len(drafts) - 1)]))
        self.states: list[PassState] = []

    def propose(self, state: PassState, n_max: int) -> Draft:
        self.states.append(state)
        return super().propose(state, n_max)


def test_a_pass_knows_what_the_one_before_it_was() -> None:
    """Prompts are read in wide passes; a wrong draft makes a pass wide, and emits one token."""
    target = FakeTarget(lambda context: np.eye(20, dtype=np.float32)[7], 20, eog=frozenset())
    watching = Watching([[], [4], [], [], [4, 4], []])
    prompt = np.array([1], np.int32)
    completer = Completer(target, combined([watching], 20))
    for _ in range(2):
        watching.states = []
        completer.run(Context(prompt), Sampler(SamplingParams()), OutputLimits(20))
        singles = [state.after_single for state in watching.states]
        assert singles[:6] == [False, True, False, True, True, False]


def test_a_stretch_says_what_its_last_pass_was() -> None:
    for n_draft, is_single in ((0, True), (12, False)):
        who = drafting([1, 2, 3], [1, 2, 3, *EMITTED] * 9, n_draft)
        limits = 1 + n_draft, 1, n_draft
        done = Model([1, 2]).stretch(who, [], 3, (0,) * N_VOCAB, *limits)
        assert (done.widths[-1] == 1) == is_single
