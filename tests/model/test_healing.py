"""Text before the cursor that the output repeats costs no token of it: a real model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.context.healing import n_repeating
from codespec.requests import CompletionRequest


@pytest.mark.parametrize("prefix", ["import os\nprint", "import os\n\nx = os.pa", "def f(", "x"])
@pytest.mark.parametrize("max_tokens", [1, 2, 5])
def test_as_many_tokens_say_something_new_as_were_asked_for(engine, prefix, max_tokens):
    request = CompletionRequest(prefix, max_tokens=max_tokens, verbatim=True)
    made = engine.generate(request)
    n_repeated = n_repeating(made.tokens, made.context.healed, engine.tokenizer)
    assert made.finish == "length"
    assert len(made.tokens) == n_repeated + max_tokens
    assert made.trace.n_tokens == len(made.tokens)
    assert engine.complete(request).text


@pytest.mark.parametrize(
    ("healed", "pieces", "expected"),
    [
        (b"", ["a"], 0),
        (b"print", [], 0),
        (b"print", ["pr"], 1),
        (b"print", ["pr", "int", "("], 2),
        (b"print", ["pr", "int(", "x"], 1),
    ],
)
def test_what_repeats_nothing_else(healed, pieces, expected):
    assert n_repeating(range(len(pieces)), healed, Pieces(pieces)) == expected


class Pieces(ByteTokenizer):
    """A tokenizer of some tokens, by id."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def piece(self, token: int) -> bytes:
        return self._pieces[token].encode()
