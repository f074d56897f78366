"""Tokenising much text at once: word by word, each word once.

BPE models split text into words with a regular expression before any merge, and source code uses
few words often: of those in a megabyte, nine of ten were seen before. So where the tokenizer is
known to split as one of the common expressions does, a table answers in its place, twice as fast.
Which one fits is found by asking the tokenizer; where none does, it tokenises everything.
"""

from __future__ import annotations

import re

import numpy as np

from codespec.index.text import MAX_PIECE, safe_cuts, split
from codespec.types import NO_TOKENS, Tokenizer, Tokens

MAX_WORDS = 1 << 17
MAX_WORD_CHARS = 40

# The published expressions for ASCII text; other text goes to the tokenizer, whose Unicode tables
# are not ours to repeat.
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_CLITICS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LETTERS = r"[^\r\nA-Za-z0-9]?[A-Za-z]+"
_OTHERS = r" ?[^\sA-Za-z0-9]+"
_EXPRESSIONS = tuple(
    re.compile(expression, re.ASCII)
    for expression in (
        rf"{_CLITICS}|{_LETTERS}|[0-9]|{_OTHERS}[\r\n]*|{_REST}",  # qwen2
        rf"{_CLITICS}|{_LETTERS}|[0-9]{{1,3}}|{_OTHERS}[\r\n]*|{_REST}",  # llama 3, gpt-4
        rf"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+|{_OTHERS}|\s+(?!\S)|\s+",  # gpt-2
    )
)
_PROBE = """\
def f(x, *, why="it's, IT'S we'll '' don't"):\n    if x >= 1234567 and x[10:-1] != 0xFF:
\t\treturn [a_b, __c__, D.e]  # 12.5%  of\t\ttabs \n\n\n  \n}\n  }\n\t});\n    ++i;\r\n\r\n
@g("...")\nclass C::D<T>&& {\n        pass\n    //// ---- a1b2c3 $x ?? 100 200 3 \\n \\u00e9 {{}}
"""


class _Known(dict[str, bytes]):
    """Word -> its tokens as bytes; asks the tokenizer for what is missing."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, word: str) -> bytes:
        tokens = self._tokenizer.encode(word).astype(np.int32, copy=False).tobytes()
        if len(word) <= MAX_WORD_CHARS and len(self) < MAX_WORDS:
            self[word] = tokens
        return tokens


class WordEncoder:
    """Not thread-safe. Holds up to about 20 MB."""

    def __init__(self, tokenizer: Tokenizer, cuts: re.Pattern[str] | None = None) -> None:
        """cuts: `safe_cuts(tokenizer)`, where the caller has it already. Asks the tokenizer a few
        hundred times."""
        self._tokenizer = tokenizer
        self._cuts = safe_cuts(tokenizer) if cuts is None else cuts
        self._known = _Known(tokenizer)
        self._words = self._expression()

    @property
    def is_by_word(self) -> bool:
        """Whether the table is of use for this tokenizer."""
        return self._words is not None

    def encode(self, text: str) -> Tokens:
        """Tokens of the whole text, however long, as the tokenizer gives them."""
        pieces = [self._encode(piece) for piece in split(text, self._cuts, MAX_PIECE // 2)]
        return np.concatenate(pieces) if pieces else NO_TOKENS

    def _encode(self, piece: str) -> Tokens:
        if self._words is None:
            return self._tokenizer.encode(piece)
        if piece.isascii():
            return _tokens(self._known, self._words.findall(piece))
        # Seldom more than a few lines of a file.
        return np.concatenate(
            [
                _tokens(self._known, self._words.findall(line))
                if line.isascii()
                else self._tokenizer.encode(line)
                for line in split(piece, self._cuts, 1)
            ]
        )

    def _expression(self) -> re.Pattern[str] | None:
        whole = self._tokenizer.encode(_PROBE)
        for expression in _EXPRESSIONS:
            if np.array_equal(_tokens(self._known, expression.findall(_PROBE)), whole):
                return expression
        return None


def _tokens(known: _Known, words: list[str]) -> Tokens:
    return np.frombuffer(b"".join(map(known.__getitem__, words)), np.int32)
