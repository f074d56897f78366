"""Limits of texts that are parsed in a process that must not die: texts that grammars fail at are
recognised by counting bytes, and refused. See `selection` for how grammars fail."""

from __future__ import annotations

import numpy as np

from codespec.syntax.parse import facts_of

MAX_BYTES = 1_000_000
MAX_DEPTH = 2_000
"""Most brackets within brackets: some grammars overflow the stack at some ten thousand."""
MAX_CHAIN = 16
"""Most openings and ends of lists of types in a statement, as braces and semicolons delimit
statements; beyond that `MAX_DEPTH` in the whole text."""

_DEPTH = np.zeros(256, np.int8)
_DEPTH[list(b"([{")] = 1
_DEPTH[list(b")]}")] = -1
_NO_BRACKETS = bytes(set(range(256)) - {*b"()[]{}"})
_NO_CHAIN = bytes(set(range(256)) - {*b"<>{};"})
_CHAIN_END = bytes.maketrans(b"{}", b";;")


def is_safe_to_parse(language: str, text: bytes) -> bool:
    """True if a text is neither too long nor too deep. 0.1 ms for 100 kB."""
    if len(text) <= MAX_DEPTH:
        return True  # whatever it holds
    return len(text) <= MAX_BYTES and not _is_deep(text) and not _is_chained(language, text)


def _is_deep(text: bytes) -> bool:
    brackets = text.translate(None, _NO_BRACKETS)
    if len(brackets) <= MAX_DEPTH:
        return False
    depths = np.cumsum(_DEPTH[np.frombuffer(brackets, np.uint8)], dtype=np.int32)
    return int(depths.max() - min(0, int(depths.min()))) > MAX_DEPTH


def _is_chained(language: str, text: bytes) -> bool:
    """True if there are too many `<` and `>` for a grammar that keeps both readings of them up to
    the text's end: memory grows with their square, in one step that nothing can stop. 40 kB of
    Java take four gigabytes."""
    if not facts_of(language).forks_at_types or text.count(b"<") + text.count(b">") <= MAX_DEPTH:
        return False
    statements = text.translate(_CHAIN_END, _NO_CHAIN).split(b";")
    return sum(max(0, len(chain) - MAX_CHAIN) for chain in statements) > MAX_DEPTH
