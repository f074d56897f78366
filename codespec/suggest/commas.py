"""Commas before what ends a list, where the language has none there."""

from __future__ import annotations

import re
from functools import cache

from codespec.languages.base import NEVER
from codespec.languages.registry import record_of
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import Place


def without_last_commas(candidate: Candidate) -> str:
    """The text without commas before what ends their list, in it or behind it; nothing, where it
    begins with that and a comma of the user's stands before it.

    A document that has such a comma elsewhere may have more of them.
    """
    text, place, read = candidate.text, candidate.place, candidate.line
    pattern = record_of(place.language).no_comma_before
    if pattern == NEVER or not text.strip():
        return text
    before = place.line.code
    ends_list = re.match(rf"\s*(?:{pattern})", read.code[len(before) :]) is not None
    if ends_list and _last_code(place, before).endswith(","):
        return text if _are_usual(place, pattern) else ""
    found = _before(pattern).finditer(f"{read.code}\n{_next_code(place)}")
    wrong = {m.start() for m in found if len(before) <= m.start() < len(read.code)}
    if not wrong or _are_usual(place, pattern):
        return text
    for at in reversed([n for n, c in enumerate(text) if c == ","]):
        n_code = len(read.upto(len(place.line_prefix) + at).code)
        if n_code in wrong and read.upto(len(place.line_prefix) + at + 1).code.endswith(","):
            is_last = not text[at + 1 :].strip()
            text = text[:at].rstrip() if is_last else text[:at] + text[at + 1 :]
    return text


@cache
def _before(pattern: str) -> re.Pattern[str]:
    """A pattern of commas before another one."""
    return re.compile(rf",(?=\s*(?:{pattern}))")


def _are_usual(place: Place, pattern: str) -> bool:
    """True if the document has such a comma at a line's end."""
    usual = re.compile(rf",[ \t]*\n\s*(?:{pattern})")
    return any(usual.search("\n".join(lines)) for lines in (place.above, place.below))


def _last_code(place: Place, before: str) -> str:
    """The code of the last line up to the cursor that has some. before: of the cursor's line."""
    if before.strip():
        return before.rstrip()
    lines = reversed(place.lines_above)
    return next((line.code.rstrip() for line in lines if line.code.strip()), "")


def _next_code(place: Place) -> str:
    """The code of the first line from the cursor on that has some."""
    here = place.end_of_line.code
    if here.strip():
        return here
    return next((line.code for line in place.lines_below if line.code.strip()), "")
