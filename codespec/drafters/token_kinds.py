"""Lexical kind of each id of a vocabulary. The planner's acceptance probabilities depend on it: the
next token is easier to predict after some kinds than after others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from codespec.types import Tokenizer

# 0 stands for tokens without bytes; the planner takes 1 for the end of a line.
(SPECIAL, LINE_END, BLANK, KEYWORD, WORD, WORD_PART, NUMBER, QUOTE) = range(8)
(OPENING, CLOSING, COMMA, DOT, COLON, COMMENT, OPERATOR) = range(8, 15)

# Words that many languages reserve or treat so. Any list will do: weights are learned for it.
_KEYWORDS = frozenset(
    b"""
    and as assert async await bool break case class const continue def default do elif else enum
    except export extends false final finally fn for from func function if impl import in int
    interface is lambda let match mut new nil none not null or override package pass private
    protected pub public raise return self static str string struct super switch this throw true
    try type use var void while with yield None True False
    """.split()
)


def token_kinds(tokenizer: Tokenizer) -> npt.NDArray[np.uint8]:
    """(n_vocab,) uint8, the kind of each id: one of the constants above. About 0.5 us an id."""
    kinds = (kind_of(tokenizer.piece(token)) for token in range(tokenizer.n_vocab))
    return np.fromiter(kinds, np.uint8, tokenizer.n_vocab)


def kind_of(piece: bytes) -> int:
    """Kind of a token with these bytes, one of the constants above."""
    text = piece.strip(b" \t")
    if not piece:
        return SPECIAL
    if text.endswith(b"\n"):  # with the next line's indentation, in some vocabularies
        return LINE_END
    if not text:
        return BLANK
    if text in _KEYWORDS:
        return KEYWORD
    if text.startswith((b"#", b"//", b"/*")):
        return COMMENT
    first, last = text[:1], text[-1:]
    if first.isalpha() or first == b"_" or first >= b"\x80":
        return WORD if piece[:1] == b" " else WORD_PART
    if first.isdigit():
        return NUMBER
    if first in b"\"'`":
        return QUOTE
    for kind, ends in (
        (OPENING, b"([{"),
        (CLOSING, b")]}"),
        (COMMA, b","),
        (DOT, b"."),
        (COLON, b":;"),
    ):
        if last in ends:
            return kind
    return OPERATOR
