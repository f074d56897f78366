"""A proposer of next edits for tests: a plain rule."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from codespec.edits.base import CursorLine, LineChange, LineEdit, Texts
from codespec.edits.dismissals import AnyDismissed, Dismissals

OWN, OTHER = 0.9, 0.6
"""Chances of edits in the document asked about, and in others."""
_WORD = re.compile(r"\w+")


class ReplaceWord:
    """Proposes what the newest change of one word did to a line for all lines with that word."""

    def propose(
        self,
        changes: Sequence[LineChange],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Collection[AnyDismissed] = (),
    ) -> list[LineEdit]:
        replaced = [pair for change in changes if (pair := _replaced(change)) is not None]
        if not replaced:
            return []
        old, new = replaced[-1]
        found = [
            *_edits(cursor.path, texts.open[cursor.path], old, new, OWN),
            *(
                edit
                for path, text in texts.open.items()
                if path != cursor.path
                for edit in _edits(path, text, old, new, OTHER)
            ),
            *(
                edit
                for path, text in texts.holding([old], 10)
                for edit in _edits(path, text, old, new, OTHER)
            ),
        ]
        unwanted = Dismissals(dismissed)

        def is_wanted(edit: LineEdit) -> bool:
            lines = texts.open.get(edit.path, "").split("\n")
            return not unwanted.has((edit.path, edit.old, edit.new), lines, edit.line)

        return list(filter(is_wanted, found))


def _replaced(change: LineChange) -> tuple[str, str] | None:
    if len(change.old) != 1 or len(change.new) != 1:
        return None
    old, new = (_WORD.findall(side[0]) for side in (change.old, change.new))
    pairs = [(a, b) for a, b in zip(old, new, strict=False) if a != b]
    return pairs[0] if len(old) == len(new) and len(pairs) == 1 else None


def _edits(path: str, text: str, old: str, new: str, chance: float) -> Iterator[LineEdit]:
    for number, line in enumerate(text.split("\n")):
        replaced = re.sub(rf"\b{re.escape(old)}\b", new, line)
        if replaced != line:
            yield LineEdit(path, number, (line,), (replaced,), chance, "word")
