"""Edits that were shown and passed over: what tells their places, and if they were made after
all."""

from __future__ import annotations

from codespec.edits.dismissals import nearest_line, neighbours
from codespec.edits.typed_edits import changed_span
from codespec.next_edit import Dismissed, NextEdit
from codespec.syntax.text import normalise

from ..documents import Document

_N_AROUND = 20
"""Lines above and below a dismissed edit in which the line that tells its place is looked for."""


def as_dismissed(edit: NextEdit, made: str) -> Dismissed:
    """An edit at its place. made: all text of its document once it is made."""
    above, below = made[: edit.edit.start], made[edit.edit.start + len(edit.edit.text) :]
    around = nearest_line(reversed(above.split("\n"))), nearest_line(below.split("\n"))
    return Dismissed(edit.path, edit.old, edit.edit.text, *around)


def without(edit: NextEdit, made: str) -> str:
    """All text of an edit's document without the edit. made: with it."""
    start, new = edit.edit.start, edit.edit.text
    return made[:start] + edit.old + made[start + len(new) :]


def stands(edit: NextEdit, before: str, text: str) -> bool:
    """True if nothing was changed where an edit is proposed. before: the text of its document when
    it was proposed. text: as it is now."""
    return changed_span(before, text).moved(edit.edit.start, edit.edit.end) is not None


def is_made(edit: Dismissed, document: Document) -> bool:
    """True if the lines in which a document was changed last are an edit's, at its place. False for
    one that only deletes: what is gone cannot be found."""
    if not edit.text.strip():
        return False
    new = edit.text.strip("\n").split("\n")
    line = document.edited.line
    first = max(0, line - len(new) - _N_AROUND)
    lines = normalise(document.lines(first, line + len(new) + _N_AROUND)).split("\n")
    for at in range(max(0, line - first - len(new) + 1), line - first + 1):
        if lines[at : at + len(new)] == new:
            above, below = neighbours(lines, at, at + len(new))
            return above == edit.above or below == edit.below
    return False
