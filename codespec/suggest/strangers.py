"""People that a model remembers from what it was trained on: a text ends before the first one that
the user's own texts do not have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from codespec.rules.person_names import stands_in
from codespec.rules.persons import may_list, may_name, mentions
from codespec.suggest.candidate import Candidate

Knows: TypeAlias = Callable[[str], bool]
"""True for a name or address that stands in other texts of the user."""
_BEGINS_COMMENT = re.compile(r"[ \t]*(?:#+|//+|/\*+|\*+|--+|%+|<!--)[ \t]*\Z")
_NOTICES = ("copyright", "(c)", "\u00a9", "licen", "spdx")
_N_ABOVE = 12
"""Lines above the cursor's that may begin a list of people."""
_MAX_ABOVE = 200
"""Characters of each of these that are looked at."""
_MAX_BEFORE = 500
"""Characters of the cursor's line, before it, that are looked at."""


def nobody(name: str) -> bool:
    """`Knows` where there are no other texts."""
    return False


def without_strangers(candidate: Candidate, knows: Knows = nobody) -> str:
    """The text before the line that first names somebody whom neither the document nor `knows` has;
    in a line that names others before, the text up to them. Inside of a comment of several lines,
    the line alone is left out, if it is not about a copyright or licence.

    The licence that a comment declares is such a name, too.
    """
    place = candidate.place
    above = "".join(f"{line[:_MAX_ABOVE]}\n" for line in place.above[-_N_ABOVE:])
    head = candidate.head[max(0, len(place.line_prefix) - _MAX_BEFORE) :]
    if not (may_name(head) or may_list(above)):
        return candidate.text
    told, cursor = above + head, len(above) + len(head) - len(candidate.text)
    last, kept, at = (0, 0), "", cursor
    for start, end in mentions(told, place.path):
        name = told[start:end]
        if end > max(at, cursor) and not (_is_here(name, candidate) or knows(name)):
            line, after = _line_around(told, start)
            n_before = len(above) + len(head) - len(candidate.head)
            if not _is_apart(candidate, line - n_before, after - n_before):
                cut = max(at, _cut(told, start, last))
                return without_begun_comment(kept + told[at:cut])
            kept, at = kept + told[at:line], after
        last = start, end
    return kept + told[at:]


def _line_around(told: str, place: int) -> tuple[int, int]:
    """(beginning of the line, beginning of the next one or the text's end)."""
    end = told.find("\n", place)
    return told.rfind("\n", 0, place) + 1, end + 1 if end >= 0 else len(told)


def _is_apart(candidate: Candidate, start: int, end: int) -> bool:
    """True if a line of the head can be left out of a comment or string of several lines.

    start, end: of the line, its end included.
    """
    read, head = candidate.line, candidate.head
    if start <= len(candidate.place.line_prefix) or end >= len(head):
        return False
    is_notice = any(word in head[start:end].lower() for word in _NOTICES)
    return not is_notice and bool(read.inside_at(start) and read.inside_at(end))


def _is_here(name: str, candidate: Candidate) -> bool:
    place = candidate.place
    return stands_in(name, place.prefix) or stands_in(name, place.suffix)


def _cut(told: str, start: int, last: tuple[int, int]) -> int:
    """The place where a text ends that may not name what begins at `start`. last: where the name
    before that begins and ends."""
    line = told.rfind("\n", 0, start) + 1
    is_quoted = any(told.count(quote, line, start) % 2 for quote in "\"'`")
    return line if last[0] < line or is_quoted else last[1]


def without_begun_comment(text: str) -> str:
    """The text without lines at its end that only begin a comment: those of one that may name
    somebody are not shown before it does not."""
    text = text.rstrip()
    while text and _BEGINS_COMMENT.match(text[text.rfind("\n") + 1 :]):
        text = text[: max(0, text.rfind("\n"))].rstrip()
    return text
