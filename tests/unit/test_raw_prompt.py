"""Raw prompts in texts and tokens: what the model reads, and the text that lookups draft from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codespec.backends.byte_tokens import ByteTokenizer
from codespec.backends.fake import FakeTarget
from codespec.context.raw_prompt import raw_context
from codespec.errors import InputError
from codespec.requests import CompletionRequest

START = "<|im_start|>"
TOKENIZER = ByteTokenizer(("<end>", "<prefix>", "<suffix>", "<middle>", START))
BEGINNING = TOKENIZER.markers["<end>"]
INFO = replace(FakeTarget().info, n_vocab=TOKENIZER.n_vocab, bos=BEGINNING)


def prompt(*parts: int | str) -> list[int]:
    request = CompletionRequest("", raw=True, parts=parts)
    left = TOKENIZER.encode("")
    return raw_context(request, INFO, TOKENIZER, TOKENIZER.markers, left).prompt.tolist()


def test_tokens_are_read_as_they_are_and_texts_with_their_special_tokens() -> None:
    start = TOKENIZER.markers[START]
    assert prompt(*b"ab") == list(b"ab")
    assert prompt(*b"ab", f"c{START}", ord("d")) == [*b"abc", start, *b"d"]
    assert prompt("a", "b") == [BEGINNING, *b"ab"]
    assert prompt(BEGINNING, *b"a") == [BEGINNING, *b"a"]


def test_a_token_beyond_the_vocabulary_is_refused() -> None:
    assert prompt(INFO.n_vocab - 1) == [INFO.n_vocab - 1]
    with pytest.raises(InputError, match=f"the token {INFO.n_vocab},.* up to {INFO.n_vocab - 1}"):
        prompt(97, INFO.n_vocab)


def test_lookups_read_the_text_of_all_parts() -> None:
    asked = CompletionRequest("", raw=True, parts=(*"é".encode(), "b\n", INFO.n_vocab + 5))
    assert asked.spelled(TOKENIZER).prefix == "éb\n"
    plain = CompletionRequest("x")
    assert plain.spelled(TOKENIZER) is plain
