"""Texts to train on, without the people in them: the rule is that which keeps people out of
suggestions."""

from __future__ import annotations

import re

from codespec.rules.addresses import addresses
from codespec.rules.persons import mentions

ADDRESS = "user@example.com"
"""An address that is reserved for examples, in the place of all others."""

# Signs that begin or end a comment or string of several lines.
_BORDER = re.compile(r"/\*|\*/|\"\"\"|'''|<!--|-->")
_WHOLE = re.compile(r"\s*(?:/\*.*\*/|<!--.*-->)\s*\Z")


def without_people(text: str, path: str) -> str:
    """The text without lines of comments that name somebody, without names in other lines, and with
    `ADDRESS` for addresses in these. path: of the file."""
    found, at, kept = mentions(text, path), 0, list[str]()
    n = 0
    for line in text.split("\n"):
        end = at + len(line)
        spans: list[tuple[int, int]] = []
        while n < len(found) and found[n].start < end:
            spans.append((found[n].start - at, found[n].end - at))
            n += 1
        scrubbed = _scrubbed(line, spans) if spans else line
        if scrubbed is not None:
            kept.append(scrubbed)
        at = end + 1
    return "\n".join(kept)


def _scrubbed(line: str, spans: list[tuple[int, int]]) -> str | None:
    """The line without the names and addresses at these places, None for nothing of it."""
    to_mail = set(addresses(line))
    names = [start for start, end in spans if (start, end) not in to_mail]
    is_apart = _BORDER.search(line) is None or _WHOLE.match(line) is not None
    if is_apart and not all(_is_quoted(line, start) for start in names):
        return None
    before = len(line)
    for start, end in sorted(spans, reverse=True):
        if end <= before:
            line = line[:start] + (ADDRESS if (start, end) in to_mail else "") + line[end:]
            before = start
    return line


def _is_quoted(line: str, at: int) -> bool:
    return any(line.count(quote, 0, at) % 2 for quote in "\"'`")
