"""Explanations of a completion, on a target that writes a given text."""

from __future__ import annotations

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer, FakeTarget
from codespec.documents.sources import PREFIX
from codespec.engine.completer import Completer
from codespec.engine.explanation import explain
from codespec.engine.output import OutputLimits
from codespec.requests import Completion, CompletionRequest
from codespec.types import Context, Draft, SamplingParams, Trace
from codespec.verify.sampling import Sampler
from tests.drafters import ScriptedDrafter, combined

BODY = "    total = price * amount\n"
ABOVE = f"def first(price, amount):\n{BODY}def other(q):\n{BODY}"
TYPED = "def first(price, amount):\n    total = price"


class FakeEngine:
    """Says `wanted` after a prefix, up to `end`. All of it is drafted, some tokens a
    pass, from text before the cursor."""

    tokenizer = ByteTokenizer()
    has_passes = True

    def __init__(self, wanted: str, healed: bytes = b"", end: str = "\n") -> None:
        self.watchers = []
        self._wanted, self._healed, self._end = wanted.encode(), healed, end.encode()

    def complete(self, request: CompletionRequest) -> Completion:
        known = request.prefix.encode().removesuffix(self._healed)
        said = self._healed + self._wanted
        prompt = self.tokenizer.encode(known)
        target = FakeTarget(self._law(known + said), order=len(known) + len(said))
        drafter = ScriptedDrafter(lambda emitted, n: self._draft(said[len(emitted) :][: min(n, 6)]))
        chain = combined([drafter, *self.watchers], self.tokenizer.n_vocab)
        context = Context(prompt, prompt, healed=self._healed)
        trace = Trace()
        tokens, finish = Completer(target, chain).run(
            context,
            Sampler(SamplingParams()),
            OutputLimits(64),
            lambda emitted: self._end in self.tokenizer.decode(emitted)[len(self._healed) :],
            trace=trace,
        )
        text = self.tokenizer.decode(tokens)[len(self._healed) :].decode()
        return Completion(request.insertion(text), finish, trace=trace)

    def _law(self, text: bytes):
        def law(before):
            logits = np.zeros(self.tokenizer.n_vocab, np.float32)
            logits[text[len(before) % len(text)]] = 9.0
            return logits

        return law

    def _draft(self, text: bytes) -> Draft:
        return Draft.chain(list(text), source=PREFIX)


def explained(engine: FakeEngine, prefix: str):
    return explain(engine, CompletionRequest(prefix, path="/a.py"))  # type: ignore[arg-type]


@pytest.mark.parametrize("n_above", [0, 200, 250, 400, 900])
@pytest.mark.parametrize("healed", [b"", b"ce", b" price"])
def test_a_draft_comes_from_where_most_of_the_text_before_it_stands_too(n_above, healed):
    """However long the prefix is, and with what is held back, which drafts repeat."""
    above = "#" * n_above + "\n" + ABOVE
    found = explained(FakeEngine(" * amount\n", healed), above + TYPED)
    spans = [span for each in found.passes for span in each.spans]
    assert len(spans) == len(found.passes) > 1
    assert [span.line for span in spans] == [3] * len(spans)


def test_what_was_accepted_after_the_end_was_never_said():
    engine = FakeEngine("abcdefghijklmnopqrstuvwxyz", end="j")
    found = explained(engine, "x = ")
    assert found.generated == found.text == "abcdefghij"
    assert [each.said for each in found.passes] == ["abcdefg", "hij"]
    (last,) = found.passes[-1].spans
    assert (last.text, last.n_accepted, last.n_drafted) == ("hij", 3, 6)


def test_where_a_draft_stands_is_told_of_the_pass_too_in_which_the_output_ends():
    found = explained(FakeEngine(" * amount\nreturn total"), ABOVE + TYPED)
    assert [each.said for each in found.passes] == [" * amou", "nt\n"]
    assert [span.line for each in found.passes for span in each.spans] == [2, 2]
