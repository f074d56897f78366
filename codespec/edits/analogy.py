"""Analogies of texts: L was edited to M; V is a variant of L; the same edit on V.

The edit and the variation are both differences from L, in parts of words, and are made together
where they do not touch (a three-way merge). What the variation says instead of a part of L it says
instead of that part in the new text as well: `handler3: H<R3>` -> `handler3: H<P, R3>` gives
`handler4: H<P, R4>` for `handler4: H<R4>`.

Source of the merge: Khanna, Kunal and Pierce 2007, "A formal investigation of diff3".
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from codespec.edits.line_tokens import n_open_brackets, word_parts

MAX_PARTS = 250
"""Parts of words in a text; the comparison takes quadratic time."""


_MAX_KNOWN = 1 << 13
_BRACKETS = frozenset("()[]{}")


class _Change(NamedTuple):
    """Parts start..end - 1 of L that are replaced by `new`."""

    start: int
    end: int
    new: list[str]


def difference(old: str, new: str) -> tuple[tuple[str, ...], ...]:
    """The parts of words that an edit replaces, and those instead, in turns; () where texts are too
    long to be compared."""
    a, b = word_parts(old), word_parts(new)
    if max(len(a), len(b)) > MAX_PARTS:
        return ()
    changes = _changes(a, b)
    return tuple(
        side for change in changes for side in (tuple(a[change.start : change.end]), (*change.new,))
    )


def analogous(original: str, edited: str, variant: str) -> str | None:
    """The edit from `original` to `edited`, on `variant`; None where they meet, are too long, or
    would leave a bracket open."""
    parts, after, other = map(word_parts, (original, edited, variant))
    if max(len(parts), len(after), len(other)) > MAX_PARTS:
        return None
    edits, variations = _changes(parts, after), _changes(parts, other)
    said = {
        tuple(parts[v.start : v.end]): v.new
        for v in reversed(variations)
        if v.start < v.end and v.new
    }
    merged: list[str] = []
    at = n_opened = 0
    for change, is_edit in sorted(
        [(e, True) for e in edits] + [(v, False) for v in variations],
        key=lambda each: (each[0].start, each[0].end, not each[1]),
    ):
        if change.start < at:
            # A variation inside what the edit replaces is carried over by `said`.
            if not is_edit and change.end <= at and _is_inside(change, edits):
                continue
            return None
        if not is_edit and any(_meet(change, edit) for edit in edits):
            if _is_inside(change, edits):
                continue
            return None
        n_more = _n_opened(change.new) - _n_opened(parts[change.start : change.end])
        if is_edit:
            n_opened += n_more
        elif n_opened and not _BRACKETS.isdisjoint(change.new):
            return None  # it may close a bracket that the edit has taken away
        merged += parts[at : change.start]
        merged += _carried(change.new, said) if is_edit else change.new
        at = change.end
    made = "".join(merged + parts[at:])
    return made if _keeps_brackets(original, edited, variant, made) else None


class Analogies:
    """Analogies, each found once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], str | None] = {}

    def get(self, original: str, edited: str, variant: str) -> str | None:
        """See `analogous`."""
        question = original, edited, variant
        if question not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[question] = analogous(*question)
        return self._known[question]

    def clear(self) -> None:
        """Forget all texts."""
        self._known.clear()


def _keeps_brackets(original: str, edited: str, variant: str, made: str) -> bool:
    """True if the new edit opens and closes as many brackets as the one it is like."""
    a, b, c, d = map(n_open_brackets, (original, edited, variant, made))
    return all(y - x == w - z for x, y, z, w in zip(a, b, c, d, strict=True))


def _n_opened(parts: Sequence[str]) -> int:
    return sum(n_open_brackets("".join(parts)))


def _changes(a: Sequence[str], b: list[str]) -> list[_Change]:
    codes = SequenceMatcher(None, a, b, False).get_opcodes()
    return [_Change(i, j, b[k:m]) for tag, i, j, k, m in codes if tag != "equal"]


def _meet(a: _Change, b: _Change) -> bool:
    return a.start < b.end and b.start < a.end


def _is_inside(change: _Change, edits: Sequence[_Change]) -> bool:
    return any(edit.start <= change.start and change.end <= edit.end for edit in edits)


def _carried(new: Sequence[str], said: dict[tuple[str, ...], list[str]]) -> list[str]:
    """New text with what the variant says for parts of the original, the longest first."""
    keys = sorted(said, key=len, reverse=True)
    carried: list[str] = []
    at = 0
    while at < len(new):
        key = next((key for key in keys if tuple(new[at : at + len(key)]) == key), None)
        if key is None:
            carried.append(new[at])
            at += 1
        else:
            carried += said[key]
            at += len(key)
    return carried
