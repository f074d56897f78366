"""Fast tokenising of much text: word by word, each word once.

BPE models split text into words with a regular expression before any merge, and source code uses
few words often: of those in a megabyte, nine of ten were seen before. So if the tokenizer is known
to split as one of the common expressions does, a native table answers in its place, many times
faster. The expression is found by asking the tokenizer; if none fits, it tokenises everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from codespec.native import MAX_WORD_BYTES, WordTable
from codespec.syntax.text import MAX_PIECE, encode, safe_cuts, split
from codespec.types import Tokenizer, Tokens

MAX_WORDS = 1 << 18
_N_SPLITTINGS = 3
_MAX_TOGETHER = 1 << 16  # bytes

# Text beyond ASCII goes to the tokenizer, whose Unicode tables are not ours to repeat.
_PROBE = b"""\
def f(x, *, why="it's, IT'S we'll '' don't"):\n    if x >= 1234567 and x[10:-1] != 0xFF:
\t\treturn [a_b, __c__, D.e]  # 12.5%  of\t\ttabs \n\n\n  \n}\n  }\n\t});\n    ++i;\r\n\r\n
@g("...")\nclass C::D<T>&& {\n        pass\n    //// ---- a1b2c3 $x ?? 100 200 3 \\n \\u00e9 {{}}
"""
_NO_SPANS = np.zeros((0, 2), np.int64)

_Spans = npt.NDArray[np.int64]


class WordEncoder:
    """A tokenizer with a table of known words. Thread-safe if the tokenizer is. Holds up to about
    20 MB; the longer it is kept, the less often it calls the tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Calls the tokenizer a few hundred times."""
        self.tokenizer = tokenizer
        self._cuts = safe_cuts(tokenizer)
        newline = tokenizer.encode("\n")
        self._newline = int(newline[0]) if len(newline) == 1 else None
        self._table = self._fitting_table()

    def encode(self, text: bytes) -> Tokens:
        """Tokens of the whole text (UTF-8), however long, shape (n,): the same as the
        tokenizer's."""
        if self._table is None:
            return encode(text.decode(), self.tokenizer, self._cuts)
        opaque = _NO_SPANS if text.isascii() else self._beyond_ascii(text)
        return self._encode(self._table, text, opaque)

    def _encode(self, table: WordTable, text: bytes, opaque: _Spans = _NO_SPANS) -> Tokens:
        tokens, unknown = table.encode(text, opaque)
        if not len(unknown):
            return tokens
        found = self._ask([text[a:b] for a, b in unknown.tolist()])
        lengths = np.array([len(f) for f in found], np.int64)
        flat = np.concatenate(found)
        table.learn(text, unknown, flat, lengths)
        return _filled(tokens, flat, lengths)

    def _ask(self, words: Sequence[bytes]) -> list[Tokens]:
        """Tokens of each word. A call of the tokenizer costs as much as five words, so words that
        end at a line end are tokenised together, in lines."""
        found: list[Tokens | None] = [None] * len(words)
        group: list[int] = []
        n_bytes = 0
        for i, word in enumerate(words):
            if self._newline is not None and _is_plain(word):
                group.append(i)
                n_bytes += len(word)
            if n_bytes > _MAX_TOGETHER:
                self._ask_together(words, group, found)
                group, n_bytes = [], 0
        self._ask_together(words, group, found)
        return [
            self._ask_one(word) if tokens is None else tokens
            for word, tokens in zip(words, found, strict=True)
        ]

    def _ask_together(
        self, words: Sequence[bytes], group: list[int], found: list[Tokens | None]
    ) -> None:
        if not group:
            return
        tokens = self.tokenizer.encode(b"\n".join(words[i] for i in group))
        ends = np.flatnonzero(tokens == self._newline)
        if len(ends) == len(group) - 1:
            starts = [0, *(ends + 1).tolist()]
            for i, a, b in zip(group, starts, [*ends.tolist(), len(tokens)], strict=True):
                found[i] = tokens[a:b]

    def _ask_one(self, word: bytes) -> Tokens:
        if len(word) <= MAX_PIECE:
            return self.tokenizer.encode(word)
        return encode(word.decode(), self.tokenizer, self._cuts)

    def _beyond_ascii(self, text: bytes) -> _Spans:
        """Spans of the lines that hold more than ASCII."""
        pieces = [piece.encode() for piece in split(text.decode(), self._cuts, 1)]
        ends = accumulate(map(len, pieces))
        spans = [(e - len(p), e) for p, e in zip(pieces, ends, strict=True) if not p.isascii()]
        return np.array(spans, np.int64).reshape(-1, 2)

    def _fitting_table(self) -> WordTable | None:
        whole = self.tokenizer.encode(_PROBE)
        for splitting in range(_N_SPLITTINGS):
            table = WordTable(splitting, MAX_WORDS)
            if np.array_equal(self._encode(table, _PROBE), whole):
                return table
        return None


def _is_plain(word: bytes) -> bool:
    """True if a word's tokens do not depend on line ends around it: none of the expressions joins a
    letter or a digit with the line end after it, nor a line end with the word's first character."""
    return (
        len(word) <= MAX_WORD_BYTES and word.isascii() and word[-1:].isalnum() and b"\n" not in word
    )


def _filled(tokens: Tokens, flat: Tokens, lengths: npt.NDArray[np.int64]) -> Tokens:
    """`tokens` with each -1 - i replaced by the i-th of the runs of these lengths in `flat`."""
    holes = np.flatnonzero(tokens < 0)
    numbers = -1 - tokens[holes]
    n_here = lengths[numbers]
    n_each = np.ones(len(tokens), np.int64)
    n_each[holes] = n_here
    filled = np.repeat(tokens, n_each)
    # Offset of each run in `flat`, less its offset among all cells to fill.
    shift = np.cumsum(lengths)[numbers] - lengths[numbers] - (np.cumsum(n_here) - n_here)
    filled[filled < 0] = flat[np.arange(int(n_here.sum())) + np.repeat(shift, n_here)]
    return filled
