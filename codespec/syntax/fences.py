"""Code between fences, in prose that is written as in Markdown."""

from __future__ import annotations

import re

_FENCE = re.compile(
    r"^[ \t]*(?:`{3,}[ \t]*(?P<word>[^\s`{},:]*)[^`\n]*|~{3,}[ \t]*(?P<other>[^\s{},:]*)[^\n]*)$",
    re.MULTILINE,
)
_SIGNS = ("```", "~~~")
_MAX_TEXT = 50_000
"""Characters before and after the cursor in which a fence is looked for."""


def fenced(prefix: str, suffix: str) -> tuple[int, int, str] | None:
    """The place of the code that the cursor is in: (where it begins in the text before the cursor,
    where it ends in the text after it, the word that the fence has for its language). None where
    the last fence above has none: it may well close code."""
    line = prefix.rfind("\n") + 1
    first = max(0, line - _MAX_TEXT)
    if not any(sign in prefix[first:line] for sign in _SIGNS):
        return None
    above = [*_FENCE.finditer(prefix, first, max(first, line - 1))]
    word = (above[-1]["word"] or above[-1]["other"] or "") if above else ""
    if not word:
        return None
    below = suffix.find("\n") + 1
    following = _FENCE.search(suffix, below, below + _MAX_TEXT) if below else None
    return above[-1].end() + 1, following.start() if following is not None else len(suffix), word
