"""Closers right after the cursor, as editors put them there: of brackets and quotes, of elements,
and of a language's own pairs of signs."""

from __future__ import annotations

import re
from functools import cache

from codespec.languages.base import PROSE_PAIRS, Language

_ANY = re.compile(r"(?:(?:[)\]}>\"'`»”’」』;,.]|</[\w.:-]*\s*>|/>)\s*)+")
_LINKS = "]("
_LINK = re.compile(r"\]\([^()\s]*\)")
# Of templates, which any language may be made by.
_TEMPLATES = (
    *(("<%", "%>"), ("<%", "-%>"), ("<%", "--%>"), ("<?", "?>"), ("{%", "%}"), ("{%", "-%}")),
    *(("{{", "-}}"), ("{{", "~}}"), ("{{", "--}}"), ("{#", "#}"), ("{!", "!!}")),
)
_OF_COMMENTS = (*PROSE_PAIRS, ('"', '"'))
_MAX_PAIRS = 8
"""Pairs within each other that are looked at."""


def behind_closers(before: str, rest: str, record: Language) -> str:
    """The rest of the cursor's line from behind all that it closes.

    before: the line up to the cursor. Brackets, quotes, elements and comments count as closed
    wherever they were opened; a pair of signs, and a link, only where the line itself opens it.
    """
    left = rest.lstrip()
    for _ in range(_MAX_PAIRS):
        closed = _closed(before, left, record)
        if not closed:
            break
        left = left[len(closed) :].lstrip()
    return left


def _closed(before: str, rest: str, record: Language) -> str:
    if comment := _end_of_comment(rest, record):
        return comment
    if closer_of_pair(before, rest, record) == _LINKS and (link := _LINK.match(rest)):
        return link[0]
    found = _ANY.match(rest)
    return found[0] if found is not None else closer_of_pair(before, rest, record)


def _end_of_comment(rest: str, record: Language) -> str:
    ends = (comment.closer for comment in record.block_comments)
    return next((end for end in ends if rest.startswith(end)), "")


def closer_of_pair(before: str, rest: str, record: Language) -> str:
    """The signs that the rest of a line begins with, blanks apart, where they close a pair that is
    open in the line before it; else ""."""
    rest = rest.lstrip()
    if not rest or _end_of_comment(rest, record):
        return ""
    if record.links and rest.startswith(_LINKS) and before.rfind("[") > before.rfind("]"):
        return _LINKS
    is_comment = before.lstrip().startswith(record.documentation)
    for opener, closer in (*_TEMPLATES, *record.pairs, *(_OF_COMMENTS if is_comment else ())):
        if not rest.startswith(closer):
            continue
        if opener != closer:
            if before.rfind(opener) > before.rfind(closer):
                return closer
            continue
        run = closer * (len(rest) - len(rest.lstrip(closer)))
        found = [m[0] for m in _runs(opener).finditer(before)]
        if found.count(run) % 2 or (before.endswith(run) and found[-1:] == [run]):
            return run
    return character_around(before, rest, record)


def character_around(before: str, rest: str, record: Language) -> str:
    """The quote of a character, if it stands right before the cursor and right after it; else
    ""."""
    quotes = (quotes.opener for quotes in record.strings if quotes.is_character)
    return next((q for q in quotes if before.endswith(q) and rest.startswith(q)), "")


def place_of_closer(text: str, closer: str) -> int:
    """The place in a text's first line of what `closer_of_pair` found, -1 for none."""
    line = text.split("\n", 1)[0]
    if len({*closer}) > 1:
        return line.find(closer)
    runs = _runs(closer[0]).finditer(line)
    return next((m.start() for m in runs if m[0] == closer), -1)


@cache
def _runs(sign: str) -> re.Pattern[str]:
    """Runs of a sign that may open or close: with text right before or after them."""
    sign = re.escape(sign)
    return re.compile(rf"(?<![\\]|{sign})(?:(?<=\S)|(?={sign}+(?:\S|\Z))){sign}+")
