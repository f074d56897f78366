"""Brackets that the cursor's line has to open, since the lines below it close them.

A parser says that something is wrong around a half-written line, not whose fault it is. Indentation
does: below `items.each(`, lines that are deeper and then `})` in the line's own column want `({`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from codespec.suggest.place import Place, indentation
from codespec.syntax.lexer import NOTHING, OPENER_OF, Lexed, joined

_MAX_OWN = 3


def wanted_openers(place: Place) -> tuple[list[Lexed], tuple[str, str]] | None:
    """(the block's lines above the cursor's; the brackets that have to be open after that line,
    outermost first: one or the other, as what is open above may be closed further below, like C++'s
    namespaces, which indent nothing). None where the lines around do not tell."""
    indent = indentation(place.line_prefix + place.rest)
    if not place.line_prefix.strip() or indentation(place.line_below) <= indent:
        return None
    below = (n for n, s in enumerate(place.below) if s.strip())
    inside: list[int] = []
    for after in below:
        if indentation(place.below[after]) <= indent:
            break
        inside.append(after)
    else:
        return None
    if indentation(place.below[after]) < indent:
        return None  # nothing is closed
    if not joined([place.lines_below[n] for n in inside], place.language).is_whole:
        return None
    closing = _closing(place, chain((after,), below), indent)
    if not closing:
        return None
    above = _block_above(place, indent)
    before = joined([*above, NOTHING], place.language)
    if before.extra or before.inside or not closing.startswith(before.opened):
        return None
    return above, (closing, before.opened + closing)


def construct_ends(place: Place) -> Iterator[int]:
    """Bytes after the cursor to where the construct may end that its line begins: with the line,
    with what is indented below it, with each of the next lines in the line's own column."""
    indent = indentation(place.line_prefix + place.rest)
    n, n_own = len(place.rest.encode()), 0
    yield n
    for text in place.below:
        if text.strip() and indentation(text) <= indent:
            yield n
            if indentation(text) < indent or n_own == _MAX_OWN:
                return
            n_own += 1
        n += len(text.encode()) + 1


def _closing(place: Place, lines: Iterable[int], indent: int) -> str:
    """The brackets, outermost first, that lines below close which begin in a column; those between,
    as in `} else {`, included. "" where nothing is closed, or more is opened."""
    found = NOTHING
    for n, at in enumerate(lines):
        line = place.lines_below[at]
        found = joined([found, line], place.language) if n else line
        if indentation(line.text) < indent:
            break
        if indentation(line.text) == indent:
            if found.inside or not found.extra:
                break
            if not found.is_open:
                return "".join(OPENER_OF[bracket] for bracket in reversed(found.closed))
    return ""


def _block_above(place: Place, indent: int) -> list[Lexed]:
    n = len(place.above)
    for line in reversed(place.above):
        if line.strip() and indentation(line) < indent:
            break
        n -= 1
    return place.lines_above[n:]
