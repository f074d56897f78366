"""Word by word gives what the tokenizer gives for the whole, for every family."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.fake import ByteTokenizer
from codespec.index.word_encoder import WordEncoder
from codespec.native import MAX_WORD_BYTES
from codespec.syntax.text import MAX_PIECE
from tests.index_support import GPT2, QWEN2, SplitTokenizer

LLAMA3 = QWEN2.replace(r"|\d|", r"|\d{1,3}|")
FAMILIES = [QWEN2, LLAMA3, GPT2]

# What the families treat differently, in any order.
PARTS = ["a", "Z", "'s", "'LL", "'", "1", "23", "4567", " ", "  ", "\t", "\n", "\r\n", "_", "x_y"]
PARTS += ["==", "(", ")", "{}", "#", "é", "中", "²", "\u00a0", "\u2028", "\x0b", "\x1c", "ß1", "-"]


@pytest.mark.parametrize("expression", FAMILIES)
@settings(max_examples=300, deadline=None)
@given(text=st.lists(st.sampled_from(PARTS), max_size=60).map("".join))
def test_ascii_text_gives_the_same_tokens(expression: str, text: str) -> None:
    text = text.encode("ascii", "ignore").decode().replace("\x1c", "")
    tokenizer = SplitTokenizer(expression)
    encoder = WordEncoder(tokenizer)
    assert encoder._table is not None
    assert np.array_equal(encoder.encode(text.encode()), tokenizer.encode(text))
    assert np.array_equal(encoder.encode(text.encode()), tokenizer.encode(text))


@pytest.mark.parametrize("expression", FAMILIES)
def test_real_files_give_the_same_tokens(expression: str) -> None:
    tokenizer = SplitTokenizer(expression)
    encoder = WordEncoder(tokenizer)
    for file in sorted(Path(np.__file__).parent.glob("lib/*.py")):
        text = file.read_text()
        assert np.array_equal(encoder.encode(text.encode()), tokenizer.encode(text)), file.name


@pytest.mark.parametrize("expression", [r"\s+\S+|\S+", r"[\s\S]", r"[\s\S]{3}|[\s\S]+"])
def test_other_families_are_left_to_the_tokenizer(expression: str) -> None:
    tokenizer = SplitTokenizer(expression)
    text = ("def f(x):\n    return x's + 123\n" * 20).strip()
    encoder = WordEncoder(tokenizer)
    if expression != r"[\s\S]":  # of single characters every split is a good one
        assert encoder._table is None
    assert tokenizer.decode(encoder.encode(text.encode())).decode() == text


def test_words_are_asked_for_once_and_long_ones_not_kept() -> None:
    tokenizer = SplitTokenizer(QWEN2)
    encoder = WordEncoder(tokenizer)
    text = "some_words = other_words\n" * 50
    encoder.encode(text.encode())
    n_calls = tokenizer.n_calls
    encoder.encode(text.encode())
    assert tokenizer.n_calls == n_calls
    for _ in range(2):
        encoder.encode(b"x" * (MAX_WORD_BYTES + 1))
    assert tokenizer.n_calls == n_calls + 2


def test_hostile_texts_cost_no_more_than_others() -> None:
    encoder = WordEncoder(ByteTokenizer())
    for unit in (" ", "\t ", "a", "'", "\n", "1", "(", "é", " \n"):
        text = unit * (MAX_PIECE * 4 // len(unit))
        assert len(encoder.encode(text.encode())) == len(text.encode())
    assert len(encoder.encode(b"")) == 0


@pytest.mark.parametrize("expression", [QWEN2, LLAMA3])
def test_each_word_of_a_run_of_digits_costs_the_same(expression: str) -> None:
    encoder = WordEncoder(SplitTokenizer(expression))
    n = 3 << 18  # as a file may hold; looked through for each of them, it takes a minute
    start = time.process_time()
    tokens = encoder.encode(b"1" * n)
    assert len(tokens) == (n if expression == QWEN2 else n // 3)
    assert time.process_time() - start < 10
