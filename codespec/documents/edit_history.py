"""The changes of a workspace's documents, merged while they are typed: what next edits repeat, and
lost lines, which prompts show and drafts come from.

A document's changes are kept as their difference from the text before them, line by line: no two of
a document touch each other, and taking all of them back gives the text that the history began with.
A change that is undone so leaves nothing, also one before which the history began anew meanwhile.
In memory only.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

from codespec.documents.lost_lines import LostLines, Origin, lost_lines, removes
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
MAX_DOCUMENTS = 64
"""Documents whose text is known; those told of least recently are dropped."""
MAX_DOCUMENT_CHARS = 1 << 26
"""Characters of these texts."""
MAX_SEEN = 200
"""Earlier texts of a document that are known again."""
MAX_PAST_CHARS = 1 << 15
"""Characters of the lost lines of changes that are not repeated any more."""
_N_AROUND = 64
"""Lines around a change that are looked at."""
_MAX_COMPARED = 200
"""Lines of both versions that are compared line by line, in one update."""


class _Trace(NamedTuple):
    """How a change came about. removes: it took characters away. origins: texts before it, and
    before those that became one with it. lost: lines that it has cost so far."""

    removes: bool = False
    origins: tuple[Origin, ...] = ()
    lost: LostLines | None = None


_NO_TRACE = _Trace()


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
    trace: _Trace = field(default=_NO_TRACE, compare=False, repr=False)


_Lines: TypeAlias = tuple[str, ...]
_Span: TypeAlias = tuple[int, int]
_Piece: TypeAlias = tuple[int, _Lines, _Lines]
"""(first line in the text before, lines there, lines instead)."""


class EditHistory:
    """The changes of one workspace's documents. Not thread-safe."""

    def __init__(self) -> None:
        self._changes: dict[str, list[LineChange]] = {}  # by path, in the order of their lines
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._past: deque[tuple[int, LostLines]] = deque()
        self._seen: dict[str, OrderedDict[int, list[_Span]]] = {}  # by path, by hash of a text
        self._numbers = itertools.count(1)
        self._is_secret: dict[tuple[_Lines, _Lines], bool] = {}

    @property
    def paths(self) -> set[str]:
        """Documents with changes or lost lines."""
        return {*self._changes, *(lost.path for _, lost in self._past)}

    def changes(self) -> list[LineChange]:
        """The changes, oldest first, with their present lines; none with a secret."""
        found = sorted(itertools.chain(*self._changes.values()), key=lambda change: change.number)
        return [change for change in found if not self._holds_secret(change)]

    def lost(self) -> list[LostLines]:
        """The lines that documents lost, oldest first: by the changes, and by earlier ones that are
        not repeated any more."""
        present = [
            (change.number, change.trace.lost)
            for change in itertools.chain(*self._changes.values())
            if change.trace.lost is not None
        ]
        return [lost for _, lost in sorted([*self._past, *present], key=lambda each: each[0])]

    def forget(self, path: str) -> bool:
        """Forget a document. Returns: True if there were any changes or lost lines."""
        is_known = path in self.paths
        self._texts.pop(path, None)
        self._seen.pop(path, None)
        self._is_secret.clear()
        self._changes.pop(path, None)
        self._past = deque(each for each in self._past if each[1].path != path)
        return is_known

    def closed(self, path: str) -> None:
        """Repeat no change of a document any more; the lines that it lost stay known."""
        self._texts.pop(path, None)
        self._seen.pop(path, None)
        self._start_anew(path)

    def text(self, path: str) -> str | None:
        """The text of a document when it was last told of; None for an unknown one."""
        return self._texts.get(path)

    def told(self, path: str, text: str, before: str | None, *, on_disk: bool = False) -> None:
        """Register the text of a document, that \\n ends lines of. Whoever sees documents tells of
        them, so a text may be known already.

        before: its text when the caller saw it last, None where it did not. on_disk: see `changed`.
        """
        if path in self._changes or before is None:
            before = self._texts.get(path, before)
        if before is None:
            self._keep_text(path, text)
        else:
            self.changed(path, before, text, on_disk=on_disk)

    def changed(self, path: str, old_text: str, new_text: str, *, on_disk: bool = False) -> None:
        """Register the change of a document from one text to another, both with \\n line ends. A
        document that changed unseen, or in many places at once, starts anew.

        on_disk: the file was changed to the new text. A document starts anew then as well, unless
        only places changed that were being edited: somebody who types and saves changes the file,
        too. Whoever goes back to a text that was there before the history knew of a change takes
        that one back, and changes nothing.
        """
        if old_text == new_text:
            if path not in self._changes:
                self._keep_text(path, new_text)
            return
        if path in self._changes and self._texts.get(path) != old_text:
            self._start_anew(path)
        self._see(path, old_text)
        self._keep_text(path, new_text)
        pieces = _pieces(old_text, new_text)
        known = self._changes.get(path, [])
        if pieces is None or (on_disk and not all(_meets(piece, known) for piece in pieces)):
            self._start_anew(path)
            self._see(path, new_text)
            return
        lines = old_text.split("\n")
        seen = self._seen[path].get(hash(new_text))
        n_above = new_text.count("\n") + 1 - len(lines)  # more lines, by the pieces above
        for piece in reversed(pieces):  # so that those above keep their lines
            line, old, new = piece
            n_above -= len(new) - len(old)
            at = line + n_above
            origin = Origin(lines, line, line + len(old))
            trace = _Trace(removes(old, new), (origin,))
            change = LineChange(path, line, old, new, 0, trace)
            if seen is None or _meets(piece, known) or _touches((at, at + len(new)), seen):
                known = self._with(known, lines, change)
            else:
                self._is_back(change)
                known = _moved(known, line, len(new) - len(old))
            lines[line : line + len(old)] = new
        if known:
            self._changes[path] = known
            self._bound()
        else:
            self._changes.pop(path, None)
        self._see(path, new_text)

    def _see(self, path: str, text: str) -> None:
        """Remember where a text had changes when it was seen first."""
        seen = self._seen.setdefault(path, OrderedDict())
        spans = [(change.line, _end(change)) for change in self._changes.get(path, ())]
        seen.setdefault(hash(text), spans)
        seen.move_to_end(hash(text))
        if len(seen) > MAX_SEEN:
            seen.popitem(last=False)

    def _keep_text(self, path: str, text: str) -> None:
        self._texts[path] = text
        self._texts.move_to_end(path)
        n_chars = sum(map(len, self._texts.values()))
        while len(self._texts) > 1 and (
            n_chars > MAX_DOCUMENT_CHARS or len(self._texts) > MAX_DOCUMENTS
        ):
            gone, gone_text = self._texts.popitem(last=False)
            self._seen.pop(gone, None)
            n_chars -= len(gone_text)
            self._start_anew(gone)

    def _start_anew(self, path: str) -> None:
        for change in self._changes.pop(path, ()):
            self._remember(change)

    def _remember(self, change: LineChange) -> None:
        """Keep the lines that a change has cost, which is not repeated any more."""
        lost = change.trace.lost
        if lost is None or any(lost == known for _, known in self._past):
            return
        self._past.append((change.number or next(self._numbers), lost))
        n_chars = sum(len(line) for _, lost in self._past for line in lost.lines)
        while n_chars > MAX_PAST_CHARS and len(self._past) > 1:
            n_chars -= sum(map(len, self._past.popleft()[1].lines))

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
        self._is_back(change)
        last = end
        if touched:
            last = max(_end(touched[-1]), end)
            change = _merged(touched, lines, change)
        change = _costing(change, lines, last)
        if not (change.old or change.new):
            return [*above, *below]
        if not _is_kept(change):
            for each in (change,) if _n_chars(change) <= MAX_CHANGE_CHARS else touched:
                self._remember(each)
            return [*above, *below]
        number = newest if is_newest else next(self._numbers)
        return [*above, replace(change, number=number), *below]

    def _is_back(self, change: LineChange) -> None:
        """Forget lost lines that a change puts back."""
        if self._past and change.new:
            new = set(change.new)
            self._past = deque(
                each
                for each in self._past
                if each[1].path != change.path or not new.issuperset(each[1].lines)
            )

    def _bound(self) -> None:
        """Drop the oldest changes beyond the bounds."""
        kept = sorted(itertools.chain(*self._changes.values()), key=lambda change: -change.number)
        sizes = itertools.accumulate(map(_n_chars, kept))
        n_kept = sum(size <= MAX_CHARS for size in itertools.islice(sizes, MAX_CHANGES))
        for gone in kept[n_kept:]:
            self._changes[gone.path].remove(gone)
            self._remember(gone)
            if not self._changes[gone.path]:
                del self._changes[gone.path]

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


def _touches(span: _Span, others: Sequence[_Span]) -> bool:
    return any(first <= span[1] and span[0] <= last for first, last in others)


def _moved(known: Sequence[LineChange], line: int, n_more: int) -> list[LineChange]:
    """A document's changes, those below a line so many lines further down."""
    return [replace(c, line=c.line + n_more) if c.line > line else c for c in known]


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
    origins = tuple(origin for other in touched for origin in other.trace.origins)
    if len(change.old) > MAX_LINES:  # lines farther away than the others reach
        origins += change.trace.origins
    trace = _Trace(any(c.trace.removes for c in (*touched, change)), origins)
    return LineChange(change.path, first, tuple(old), new, 0, trace)


def _costing(whole: LineChange, lines: Sequence[str], end: int) -> LineChange:
    """A change, trimmed, with the lines that it has cost. lines: the text before it. end: the first
    of them below all that it touches."""
    change = _trimmed(whole)
    if not change.trace.removes or not change.old or _n_chars(change) > MAX_CHANGE_CHARS:
        return change
    n_head = change.line - whole.line
    n_tail = len(whole.new) - n_head - len(change.new)
    above = (*lines[max(0, whole.line - _N_AROUND) : whole.line], *whole.new[:n_head])
    below = (*whole.new[len(whole.new) - n_tail :], *lines[end : end + _N_AROUND])
    lost = lost_lines(change.path, change.old, change.new, above, below, change.trace.origins)
    return replace(change, trace=change.trace._replace(lost=lost))


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
