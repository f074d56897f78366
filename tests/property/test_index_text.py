"""A text cut at safe places tokenises as the whole does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.documents.pieces import PieceCache
from codespec.syntax.text import safe_cuts, split
from tests.index_support import GPT2, QWEN2, SplitTokenizer

ATOMS = [
    "a",
    "bc",
    "X1",
    "_",
    "  ",
    " ",
    "\t",
    "\n",
    "\n\n",
    "\r",
    ":",
    "()",
    "}",
    "'s",
    "é",
    "\xa0",
]
texts = st.lists(st.sampled_from(ATOMS), max_size=60).map("".join)


@pytest.mark.parametrize("expression", [GPT2, QWEN2])
@settings(max_examples=400)
@given(text=texts, min_piece=st.sampled_from([1, 7]))
def test_pieces_tokenise_as_the_whole(expression: str, text: str, min_piece: int) -> None:
    tokenizer = SplitTokenizer(expression)
    pieces = list(split(text, safe_cuts(tokenizer), min_piece))
    assert "".join(pieces) == text
    assert all(pieces)
    tokens = [t for piece in pieces for t in tokenizer.encode(piece).tolist()]
    assert tokens == tokenizer.encode(text).tolist()


@pytest.mark.parametrize("expression", [GPT2, QWEN2])
@settings(max_examples=200)
@given(texts=st.lists(texts, min_size=1, max_size=4))
def test_remembered_pieces_are_those_of_the_tokenizer(expression: str, texts: list[str]) -> None:
    tokenizer = SplitTokenizer(expression)
    cuts = safe_cuts(tokenizer)
    cache = PieceCache(tokenizer, cuts)
    for text in texts:
        pieces = list(split(text, cuts, 1))
        for piece, tokens in zip(pieces, cache.encode(pieces), strict=True):
            assert np.array_equal(tokens, tokenizer.encode(piece))
