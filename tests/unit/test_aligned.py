"""Drafts from a text that the output rewrites: from the first token on, and behind differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer, FakeTarget, hashed_logits
from codespec.config import load_settings
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.drafters.aligned import ALIGNED, AlignedDrafter, OldText, n_copied
from codespec.drafters.base import Drafter
from codespec.drafters.planners import Planners
from codespec.drafters.token_kinds import token_kinds
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.requests import CompletionRequest
from codespec.types import NO_TOKENS, Context, Draft, PassState, SamplingParams, Source
from codespec.verify.sampling import Sampler
from tests.drafters import ScriptedDrafter, combined
from tests.engines import strict_engine

TOKENIZER = ByteTokenizer()
OLD = """def first(a, b):
    total = a + b
    return total


def second(a, b):
    return first(a, b) * 2
"""


def drafter_for(old: str, curve: CostCurve = FLAT) -> AlignedDrafter:
    drafter = AlignedDrafter(curve, 1, Planners(token_kinds(TOKENIZER)))
    drafter.begin(Context(NO_TOKENS, old=TOKENIZER.encode(old)))
    return drafter


def propose(drafter: AlignedDrafter, emitted: str, n: int = 12) -> str:
    draft = drafter.propose(PassState(TOKENIZER.encode(emitted)), n)
    assert {Source.of(number) for number in draft.sources.tolist()} <= {ALIGNED}
    return TOKENIZER.decode(draft.tokens).decode()


@pytest.mark.parametrize(
    ("emitted", "draft"),
    [
        ("", "def first(a,"),
        ("def first(a, b):\n", "    total = "),
        # A word for another, one that is longer, and none.
        ("def first(x, b):\n", "    total = "),
        ("def first(number, b):\n", "    total = "),
        ("def first(b):\n", "    total = "),
        # A line that is new, one in place of another, two that are left out.
        ('def first(a, b):\n    """Adds."""\n    tot', "al = a + b\n "),
        ("def first(a, b):\n    total = sum([a, b])\n    return", " total\n\n\nde"),
        ("def first(a, b):\n\n\ndef sec", "ond(a, b):\n "),
        ("def first(a, b):\n    total = a + b\n", "    return t"),
    ],
)
def test_it_goes_on_where_the_old_text_does(emitted: str, draft: str):
    found = propose(drafter_for(OLD), emitted)
    assert found.startswith(draft[:9])


def test_nothing_is_drafted_behind_the_end():
    assert propose(drafter_for("abc"), "ab") == "c"
    assert propose(drafter_for("abc"), "abc") == ""
    assert propose(drafter_for(""), "") == ""


def test_as_much_is_drafted_as_pays():
    dear = CostCurve({1: 1.0, 2: 1.0, 3: 1.0, 4: 9.0})
    assert propose(drafter_for(OLD, dear), "def ") == "fi"
    assert propose(drafter_for(OLD), "def ", 0) == ""


def test_one_place_as_long_as_both_agree_and_several_behind_a_difference():
    old = OldText(TOKENIZER.encode("abcdefgh abcxyz"))
    assert old.places == {0: 1.0}
    old.follow(TOKENIZER.encode("abc"))
    assert old.places == {3: 1.0}
    old.follow(TOKENIZER.encode("abc!"))
    assert {3, 4} <= set(old.places)  # inserted, or in place of the next
    old.follow(TOKENIZER.encode("abc!ef"))
    assert max(old.places, key=lambda at: old.places[at]) == 6
    old.follow(TOKENIZER.encode("abc!efgh"))
    assert max(old.places.values()) > 0.95


def generate(members: list[Drafter], old: bytes, n_tokens: int = 40):
    target = FakeTarget(hashed_logits(256), n_vocab=256)
    context = Context(TOKENIZER.encode("abcab"), old=TOKENIZER.encode(old))
    chain = combined(members, 256)
    emitted, _ = Completer(target, chain).run(
        context, Sampler(SamplingParams()), OutputLimits(n_tokens)
    )
    return TOKENIZER.decode(emitted), target.n_passes, chain.counters.by_source


def test_a_request_without_an_old_text_never_asks_it():
    class Failing(AlignedDrafter):
        def begin(self, context: Context) -> None:
            raise AssertionError

    other = ScriptedDrafter()
    failing = Failing(FLAT, 1, Planners(token_kinds(TOKENIZER)))
    plain, _, _ = generate([], b"")
    assert generate([other, failing], b"")[0] == plain
    with pytest.raises(AssertionError):
        generate([other, failing], b"a")


def test_of_two_drafts_the_one_that_promises_more_is_verified():
    plain = generate([], b"")[0]
    wrong = Draft.chain([0], probs=np.array([0.1], np.float32))
    unsure = ScriptedDrafter(lambda emitted, n_max: wrong)
    aligned = AlignedDrafter(FLAT, 1, Planners(token_kinds(TOKENIZER)))
    text, n_passes, by_source = generate([unsure, aligned], plain)
    assert text == plain
    assert n_passes < 40
    assert by_source[ALIGNED].n_accepted > 10


@pytest.mark.parametrize(
    ("output", "n"),
    [
        ("", 0),
        (OLD, len(OLD)),
        (OLD[:30], 30),
        (OLD + OLD, len(OLD)),  # each token counts once
        (OLD.replace("total", "sum_"), len(OLD) - 2 * len("total")),
        (OLD.replace("    return total\n", ""), len(OLD) - len("    return total\n")),
        (OLD.replace("return", "return 1 +"), len(OLD)),
        ("0123456789" * 9, 0),
    ],
)
def test_copied_tokens_are_counted_behind_differences_too(output: str, n: int) -> None:
    # A letter or two that a difference has in common with the old text may count.
    found = n_copied(TOKENIZER.encode(OLD), TOKENIZER.encode(output))
    assert n - 3 <= found <= min(n + 3, len(OLD))


def test_what_a_prediction_has_in_common_with_an_answer_counts_whoever_drafts_it() -> None:
    engine = strict_engine(load_settings({"model": {"target": "fake:"}}, env={}))
    engine.remembers = False
    asked = CompletionRequest("x = (", max_tokens=40, verbatim=True)
    text = engine.complete(asked).text
    assert engine.complete(asked).trace.n_old == 0
    for predicted in (text, "\0" * 9):
        counts: set[tuple[int, int]] = set()
        for drafters in (None, (), ("lookup",)):
            request = replace(asked, rewrites=predicted, drafters=drafters)
            trace = engine.complete(request).trace
            counts.add((trace.n_old, trace.n_old_copied))
        ((n_old, n_had),) = counts
        assert n_old == len(predicted.encode())
        assert (n_had > 0.8 * n_old) == (predicted == text)
    engine.close()
