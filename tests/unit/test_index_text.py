"""Places where texts may be cut, for tokenizers of different families."""

from __future__ import annotations

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.documents import pieces
from codespec.documents.pieces import PieceCache
from codespec.syntax.text import MAX_PIECE, encode, normalise, safe_cuts, split
from tests.index_support import GPT2, QWEN2, SplitTokenizer


def test_line_ends_and_byte_order_mark() -> None:
    assert normalise("\ufeffa\r\nb\rc\n\r\n") == "a\nb\nc\n\n"


@pytest.mark.parametrize(
    ("expression", "pieces"),
    [
        (QWEN2, ["x:\n", "  y\n\n", "  z"]),
        (GPT2, ["x:", "\n  y", "\n\n  z"]),
        (r"x:\n|[\s\S]", ["x:\n", "  y\n\n", "  z"]),
        (r"\s+\S+|\S+", ["x:", "\n  y", "\n\n  z"]),
    ],
)
def test_cuts_are_found_by_asking(expression: str, pieces: list[str]) -> None:
    cuts = safe_cuts(SplitTokenizer(expression))
    assert list(split("x:\n  y\n\n  z", cuts, 1)) == pieces


def test_a_tokenizer_that_merges_across_lines_is_cut_seldom() -> None:
    cuts = safe_cuts(SplitTokenizer(r"[\s\S]{3}|[\s\S]+"))
    assert list(split("a\n  b\n\nc\nd", cuts, 1)) == ["a\n  b\n\nc\n", "d"]


def test_long_lines_are_cut_anyway() -> None:
    text = "x" * (2 * MAX_PIECE + 5)
    pieces = list(split(text, safe_cuts(ByteTokenizer()), 1))
    assert [len(p) for p in pieces] == [MAX_PIECE, MAX_PIECE, 5]


def test_encode_is_the_whole_in_pieces() -> None:
    tokenizer = SplitTokenizer(QWEN2)
    text = "def f(x):\n    return x\n\n\n" * 2000
    tokens = encode(text, tokenizer, safe_cuts(tokenizer))
    assert tokenizer.n_calls > 3
    assert np.array_equal(tokens, SplitTokenizer(QWEN2).encode(text))
    assert len(encode("", tokenizer, safe_cuts(tokenizer))) == 0


def test_remembered_pieces_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """With each key, a long line is another piece."""
    monkeypatch.setattr(pieces, "MAX_CHARS", 1000)
    tokenizer = ByteTokenizer()
    cache = PieceCache(tokenizer, safe_cuts(tokenizer))
    for n in range(100):
        line = "x" * (100 + n)
        (tokens,) = cache.encode([line])
        assert tokenizer.decode(tokens) == line.encode()
        assert sum(map(len, cache._known)) <= 1000


def test_of_what_is_typed_only_the_latest_is_remembered() -> None:
    """The whole document that it is typed into is remembered, too."""
    tokenizer = ByteTokenizer()
    cache = PieceCache(tokenizer, safe_cuts(tokenizer))
    document = [f"line {n}\n" for n in range(3000)]
    cache.encode(document)
    for n in range(2000):
        cache.encode([document[n], f"typed {n}"])
    assert len(cache._known) == len(document) + pieces.MAX_TYPED
    assert "typed 1999" in cache._known
    for n in range(20):
        cache.encode([f"{n} long " * 1000])
    n_chars = sum(map(len, cache._known)) - sum(map(len, document))
    assert n_chars <= pieces.MAX_TYPED_CHARS
