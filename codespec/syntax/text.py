"""Places where a text may be cut so that its pieces tokenise as the whole does.

BPE models split text with a regular expression before any merge, and no merge crosses a split. So
text can be tokenised piece by piece, cut at splits, and after an edit only the pieces it touched
need the tokenizer again. Families split differently around line ends, so the place is found by
asking the tokenizer:

- qwen2, llama-3 and their kin end a split after the last newline of a run of white space
  (`\\s*[\\r\\n]+`), and indentation begins a new one: cut after the newline.
- GPT-2 and its kin take newline and indentation together (`\\s+(?!\\S)`), but end a split where
  white space begins: cut before the newline.

A tokenizer that fits neither costs nothing but drafts: tokens near a cut may differ from the
model's, and lookups there miss.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import AnyStr

import numpy as np

from codespec.types import NO_TOKENS, Tokenizer, Tokens

MAX_PIECE = 16384
"""Characters. A longer line is cut anywhere: bounded work matters more than one token."""

_AFTER_NEWLINE = re.compile(r"(?<=\n)(?=[ \t]*\S)")
_BEFORE_NEWLINE = re.compile(r"(?<=\S)(?=\n)")
_BETWEEN_LINES = re.compile(r"(?<=\S\n)(?=\S)")
_PROBE = (
    "import a\nimport b\n\n\ndef f(x):\n    if x:\n        return [\n            1,\n\t\t2,\n"
    "        ]\n\n    # why\n    return 'é' \n\n  \n@g\nclass C:\n    pass\n"
    "}\n\t}\n \tx();\n{\n  y\n"
)


def normalise(text: str) -> str:
    """The text as it is indexed and looked up: line ends as \\n, without a byte order mark."""
    if text.startswith("\ufeff"):
        text = text[1:]
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def safe_cuts(tokenizer: Tokenizer) -> re.Pattern[str]:
    """An expression of zero width that matches the places where this tokenizer's text may be cut.

    Costs about 100 calls of the tokenizer: do it once.
    """
    whole = tokenizer.encode(_PROBE)
    for pattern in (_AFTER_NEWLINE, _BEFORE_NEWLINE):
        pieces = [tokenizer.encode(piece) for piece in split(_PROBE, pattern, 1)]
        if np.array_equal(np.concatenate(pieces), whole):
            return pattern
    return _BETWEEN_LINES


def split(text: str, cuts: re.Pattern[str], min_piece: int) -> Iterator[str]:
    """Cut at every allowed place at least `min_piece` characters after the one before. The pieces
    joined are `text`; none is empty."""
    start = 0
    while start < len(text):
        found = cuts.search(text, start + min_piece, start + MAX_PIECE)
        # A search with an end treats it as the end of the text, so that a look-ahead may fail
        # there, but never succeeds wrongly: all look for a character that is present.
        end = found.start() if found else min(start + MAX_PIECE, len(text))
        if not found and len(text) - start <= MAX_PIECE:
            end = len(text)
        yield text[start:end]
        start = end


def encode(text: str, tokenizer: Tokenizer, cuts: re.Pattern[str]) -> Tokens:
    """Tokens of the whole text, shape (n,), however long, in calls of bounded size."""
    pieces = [tokenizer.encode(piece) for piece in split(text, cuts, MAX_PIECE // 2)]
    return np.concatenate(pieces) if pieces else NO_TOKENS


def n_bytes(text: str) -> int:
    """Length of a text in UTF-8, known at once where it is ASCII."""
    return len(text) if text.isascii() else len(text.encode())


def common_prefix(a: AnyStr, b: AnyStr) -> int:
    """Length of the longest common prefix. Found by halving: slices compare at memory speed."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(a: AnyStr, b: AnyStr, most: int) -> int:
    """Length of the longest common suffix, at most `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low
