"""Texts that may be parsed in a process that is needed: what grammars fail at is refused, by
counting bytes. See `parse` for what they do otherwise."""

from __future__ import annotations

import numpy as np

MAX_BYTES = 1_000_000
MAX_DEPTH = 2_000
"""Brackets within brackets: some grammars overflow the stack at some ten thousand."""
MAX_CHAIN = 16
"""Openings and ends of lists of types in a statement, as braces and semicolons tell statements;
beyond that `MAX_DEPTH` in the whole text."""
_GENERIC = frozenset(("java", "csharp", "typescript", "tsx", "cpp", "swift"))
"""Languages where `<` and `>` may be of such a list. Some grammars keep both readings up to the
text's end, where memory goes by the square of them, in one step that nothing can stop: 40 kB of
Java take four gigabytes."""

_DEPTH = np.zeros(256, np.int8)
_DEPTH[list(b"([{")] = 1
_DEPTH[list(b")]}")] = -1
_NO_BRACKETS = bytes(set(range(256)) - {*b"()[]{}"})
_NO_CHAIN = bytes(set(range(256)) - {*b"<>{};"})
_CHAIN_END = bytes.maketrans(b"{}", b";;")


def is_tame(language: str, text: bytes) -> bool:
    """True if a text is neither too long nor too deep. 0.1 ms for 100 kB."""
    return len(text) <= MAX_BYTES and not _is_deep(text) and not _is_chained(language, text)


def _is_deep(text: bytes) -> bool:
    brackets = text.translate(None, _NO_BRACKETS)
    if len(brackets) <= MAX_DEPTH:
        return False
    depths = np.cumsum(_DEPTH[np.frombuffer(brackets, np.uint8)], dtype=np.int32)
    return int(depths.max() - min(0, int(depths.min()))) > MAX_DEPTH


def _is_chained(language: str, text: bytes) -> bool:
    if language not in _GENERIC or text.count(b"<") + text.count(b">") <= MAX_DEPTH:
        return False
    statements = text.translate(_CHAIN_END, _NO_CHAIN).split(b";")
    return sum(max(0, len(chain) - MAX_CHAIN) for chain in statements) > MAX_DEPTH
