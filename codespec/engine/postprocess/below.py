"""What the lines below the cursor's close, its own line has to open.

A parser says that something is wrong around a half-written line, not whose fault it is. Indentation
does: below `items.each(`, lines that are deeper and then `})` in the line's own column want `({`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from codespec.engine.postprocess.place import Place, indentation
from codespec.engine.postprocess.scan import OPENER_OF, scan

_MAX_OWN = 3


def wanted_openers(place: Place) -> tuple[str, tuple[str, str]] | None:
    """(the block's text above the cursor's line; the brackets that have to be open after that line,
    outermost first: one or the other, as what is open above may be closed further below, like C++'s
    namespaces, which indent nothing). None where the lines around do not tell."""
    line = place.line_prefix + place.rest
    below = [s for s in place.below if s.strip()]
    indent = indentation(line)
    inside = list(takewhile(lambda s: indentation(s) > indent, below))
    if not place.line_prefix.strip() or not inside or not _is_whole(inside, place.language):
        return None
    closing = _closing(below[len(inside) :], indent, place.language)
    above = _block_above(place, indent)
    before = scan(above, place.language)
    opened = "".join(bracket for bracket, _ in before.open)
    if not closing or before.extra or before.inside or not closing.startswith(opened):
        return None
    return above, (closing, opened + closing)


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


def _is_whole(lines: list[str], language: str) -> bool:
    found = scan("\n".join(lines), language)
    return not (found.open or found.extra or found.inside)


def _closing(lines: list[str], indent: int, language: str) -> str:
    """The brackets, outermost first, that lines close which begin in a column; those between, as in
    `} else {`, included. "" where nothing is closed, or more is opened."""
    for n, line in enumerate(lines, 1):
        if indentation(line) < indent:
            break
        if indentation(line) == indent:
            text = "\n".join(lines[:n])
            found = scan(text, language)
            if found.inside or not found.extra:
                break
            if not found.open:
                return "".join(OPENER_OF[text[at]] for at in reversed(found.extra))
    return ""


def _block_above(place: Place, indent: int) -> str:
    above = reversed(place.above)
    same = list(takewhile(lambda s: not s.strip() or indentation(s) >= indent, above))
    return "".join(f"{s}\n" for s in reversed(same))
