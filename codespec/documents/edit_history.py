"""The changes of a workspace's documents, merged while they are typed: what next edits repeat.

A document's changes are kept as their difference from the text before them, line by line: no two of
a document touch each other, and taking all of them back gives the text that the history began with.
A change that is undone so leaves nothing. In memory only.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TypeAlias

from codespec.rules.secrets import find
from codespec.syntax.text import common_prefix, common_suffix

MAX_CHANGES = 200
"""Changes of all documents; the oldest are dropped."""
MAX_CHARS = 1 << 17
"""Characters of all changes, old and new lines."""
MAX_LINES = 20
"""Lines before or after a change. A larger one is nothing that people repeat by hand."""
MAX_CHANGE_CHARS = 1 << 13
"""Characters of one change."""
MAX_PLACES = 5
"""Places that change at once in one document. Formatters, branch switches and undo storms change
more of them: they tell nothing about the user's intention."""
_MAX_COMPARED = 200
"""Lines of both versions that are compared line by line, in one update."""


@dataclass(frozen=True, slots=True)
class LineChange:
    """A change of lines in one document, as large as it has become while it was typed.

    path: of the document, absolute.
    line: its first line in the document as it is now, from 0.
    old, new: the lines before it and now, without line ends; either may be empty.
    number: ascending in the history; the newest change keeps it while it grows.
    """

    path: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    number: int


_Lines: TypeAlias = tuple[str, ...]
_Piece: TypeAlias = tuple[int, _Lines, _Lines]
"""(first line in the text before, lines there, lines instead)."""


class EditHistory:
    """The changes of one workspace's documents. Not thread-safe."""

    def __init__(self) -> None:
        self._changes: dict[str, list[LineChange]] = {}  # by path, in the order of their lines
        self._texts: dict[str, int] = {}  # hash of each changed document's text
        self._numbers = itertools.count(1)
        self._is_secret: dict[tuple[_Lines, _Lines], bool] = {}

    @property
    def paths(self) -> set[str]:
        """Documents with changes."""
        return set(self._changes)

    def changes(self) -> list[LineChange]:
        """The changes, oldest first, with their present lines; none with a secret."""
        found = sorted(itertools.chain(*self._changes.values()), key=lambda change: change.number)
        return [change for change in found if not self._holds_secret(change)]

    def forget(self, path: str) -> bool:
        """Forget the changes of a document. Returns: True if there were any."""
        self._texts.pop(path, None)
        self._is_secret.clear()
        return self._changes.pop(path, None) is not None

    def changed(self, path: str, old_text: str, new_text: str, *, on_disk: bool = False) -> None:
        """Register the change of a document from one text to another, both with \\n line ends. A
        document that changed unseen, or in many places at once, starts anew.

        on_disk: the file was changed to the new text. A document starts anew then as well, unless
        only places changed that were being edited: somebody who types and saves changes the file,
        too.
        """
        if old_text == new_text:
            return
        if path in self._texts and self._texts[path] != hash(old_text):
            self.forget(path)
        pieces = _pieces(old_text, new_text)
        if pieces is None:
            self.forget(path)
            return
        known = self._changes.get(path, [])
        if on_disk and not all(_meets(piece, known) for piece in pieces):
            self.forget(path)
            return
        lines = old_text.split("\n") if known else list[str]()
        for line, old, new in reversed(pieces):  # so that those above keep their lines
            known = self._with(known, lines, LineChange(path, line, old, new, 0))
            lines[line : line + len(old)] = new
        if known:
            self._changes[path], self._texts[path] = known, hash(new_text)
            self._bound()
        else:
            self.forget(path)

    def _with(
        self, known: list[LineChange], lines: Sequence[str], change: LineChange
    ) -> list[LineChange]:
        """A document's changes with one more, whose line and old lines are those of `lines`."""
        end, n_more = change.line + len(change.old), len(change.new) - len(change.old)
        above = [other for other in known if _end(other) < change.line]
        below = [replace(c, line=c.line + n_more) for c in known if c.line > end]
        touched = known[len(above) : len(known) - len(below)]
        newest = max((c.number for cs in self._changes.values() for c in cs), default=0)
        is_newest = any(other.number == newest for other in touched)
        if touched:
            change = _merged(touched, lines, change)
        change = _trimmed(change)
        if not (change.old or change.new) or not _is_kept(change):
            return [*above, *below]
        number = newest if is_newest else next(self._numbers)
        return [*above, replace(change, number=number), *below]

    def _bound(self) -> None:
        """Drop the oldest changes beyond the bounds."""
        kept = sorted(itertools.chain(*self._changes.values()), key=lambda change: -change.number)
        sizes = itertools.accumulate(map(_n_chars, kept))
        n_kept = sum(size <= MAX_CHARS for size in itertools.islice(sizes, MAX_CHANGES))
        for gone in kept[n_kept:]:
            self._changes[gone.path].remove(gone)
            if not self._changes[gone.path]:
                self.forget(gone.path)

    def _holds_secret(self, change: LineChange) -> bool:
        if len(self._is_secret) > 2 * MAX_CHANGES:
            self._is_secret.clear()
        key = change.old, change.new
        if key not in self._is_secret:
            self._is_secret[key] = any(find("\n".join(side)) for side in key)
        return self._is_secret[key]


def _pieces(old_text: str, new_text: str) -> list[_Piece] | None:
    """The places where two texts differ, from the top; None where they are too many."""
    n_same = common_prefix(old_text, new_text)
    n_most = min(len(old_text), len(new_text)) - n_same
    n_tail = common_suffix(old_text, new_text, n_most)
    start = old_text.rfind("\n", 0, n_same) + 1
    old = old_text[start : _line_end(old_text, len(old_text) - n_tail)].split("\n")
    new = new_text[start : _line_end(new_text, len(new_text) - n_tail)].split("\n")
    whole = _trimmed(LineChange("", old_text.count("\n", 0, start), tuple(old), tuple(new), 0))
    n_less, n_more = sorted((len(whole.old), len(whole.new)))
    if n_less <= 1 or (n_less <= MAX_LINES and n_more > _MAX_COMPARED):
        return [(whole.line, whole.old, whole.new)]
    if n_more > _MAX_COMPARED:
        return None
    pieces = [
        (whole.line + a, whole.old[a:b], whole.new[c:d])
        for tag, a, b, c, d in SequenceMatcher(None, whole.old, whole.new, False).get_opcodes()
        if tag != "equal"
    ]
    return pieces if len(pieces) <= MAX_PLACES else None


def _meets(piece: _Piece, known: Sequence[LineChange]) -> bool:
    """True if one of a document's changes touches a place that changes."""
    line, old, _ = piece
    return any(change.line <= line + len(old) and line <= _end(change) for change in known)


def _merged(touched: list[LineChange], lines: Sequence[str], change: LineChange) -> LineChange:
    """One change instead of those that `change` touches and itself. lines: the text before it."""
    end = change.line + len(change.old)
    first, last = min(touched[0].line, change.line), max(_end(touched[-1]), end)
    old: list[str] = []
    at = first
    for other in touched:
        old += [*lines[at : other.line], *other.old]
        at = _end(other)
    old += lines[at:last]
    new = (*lines[first : change.line], *change.new, *lines[end:last])
    return LineChange(change.path, first, tuple(old), new, 0)


def _trimmed(change: LineChange) -> LineChange:
    """The change without lines that are the same before and after it, at both ends."""
    old, new = change.old, change.new
    n_least = min(len(old), len(new))
    n_head = next((i for i in range(n_least) if old[i] != new[i]), n_least)
    n_least -= n_head
    n_tail = next((i for i in range(n_least) if old[-1 - i] != new[-1 - i]), n_least)
    old, new = old[n_head : len(old) - n_tail], new[n_head : len(new) - n_tail]
    return replace(change, line=change.line + n_head, old=old, new=new)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _end(change: LineChange) -> int:
    """The line behind a change, in the text as it is now."""
    return change.line + len(change.new)


def _n_chars(change: LineChange) -> int:
    return sum(map(len, change.old)) + sum(map(len, change.new))


def _is_kept(change: LineChange) -> bool:
    n_lines = max(len(change.old), len(change.new))
    return n_lines <= MAX_LINES and _n_chars(change) <= MAX_CHANGE_CHARS
