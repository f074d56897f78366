"""Changes of a document as editors send them: read strictly, many of them applied at once.

A message can hold tens of thousands: all that "replace all" or a formatter did. Applied one by one
to a list of lines, each would cost its line, of which a minified file has one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codespec.limits import CHANGES

from .bounds import is_integer
from .positions import (
    Encoding,
    Place,
    split_lines,
    to_character,
    to_index,
    well_formed,
    without_end,
)

CLOSED = ("()", "[]", "{}", '""', "''", "``")
"""What an editor makes of the first of these, the cursor being between them."""
MANY = 200
"""From so many on, all at once costs less than one by one."""
_MIN_CHUNK = 4096
_N_CHUNKS = 256
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Change:
    """`text` replaces what stands from `start` to `end`, or everything where there is neither."""

    text: str
    start: Place | None = None
    end: Place | None = None

    @property
    def is_key(self) -> bool:
        """Whether it is what one key brings: a character, with the bracket or quote that an editor
        closes it with, or a line end and its indentation, between brackets on a line of its own."""
        is_line_end = self.text[:1] in ("\r", "\n") and not self.text.strip()
        return (
            self.start is not None
            and self.start == self.end
            and (len(self.text) == 1 or self.text in CLOSED or is_line_end)
        )

    def cursor(self, end: Place) -> Place:
        """Where the cursor most likely is, in characters, if this was the last change and ended at
        `end`: before what the editor closes with the key."""
        if self.is_key and self.text in CLOSED:
            return Place(end.line, end.character - 1)
        lines = [without_end(line) for line in split_lines(self.text)]
        if self.is_key and len(lines) == 3 and len(lines[1]) > len(lines[2]):
            return Place(end.line - 1, len(lines[1]))
        return end


def as_one(changes: Sequence[Change]) -> Change | None:
    """The only one; or what one key brings where an editor closes it with a change of its own."""
    if len(changes) == 2:
        key, more = changes
        one = Change(key.text + more.text, key.start, key.end)
        if one.is_key and one.text in CLOSED and one.start is not None:
            within = Place(one.start.line, one.start.character + 1)
            return one if more.start == more.end == within else None
    return changes[0] if len(changes) == 1 else None


@dataclass(frozen=True, slots=True)
class Changed:
    """What `textDocument/didChange` says."""

    uri: str
    version: int
    changes: list[Change]


def read_changed(params: Any) -> Changed:
    """From JSON. Raises: ValueError, TypeError, KeyError for what the protocol does not have."""
    document = params["textDocument"]
    if len(params["contentChanges"]) > CHANGES:
        raise ValueError("too many changes")
    return Changed(
        _of_type(document["uri"], str),
        _of_type(document["version"], int),
        [_read_change(change) for change in _of_type(params["contentChanges"], list)],
    )


def _read_change(change: Any) -> Change:
    text = _of_type(change["text"], str)
    if "range" not in change:
        return Change(text)
    where = change["range"]
    return Change(text, _read_place(where["start"]), _read_place(where["end"]))


def _read_place(place: Any) -> Place:
    line, character = _of_type(place["line"], int), _of_type(place["character"], int)
    if line < 0 or character < 0:
        raise ValueError("a place before the document")
    return Place(line, character)


def _of_type(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind or (kind is int and not is_integer(value)):  # nor is True a number
        raise TypeError(f"not {kind.__name__}")
    return value


def edited(text: str, changes: Sequence[Change], encoding: Encoding) -> tuple[str, Place]:
    """The text after all changes, one after another, and where the last one ended (in characters).

    Cost: some ten microseconds a change, and more where the text has more than a megabyte.
    """
    chunks = _Chunks(text, encoding)
    n_before = 0
    for change in changes:
        new = well_formed(change.text)
        if change.start is None or change.end is None:
            chunks = _Chunks(new, encoding)
        else:
            if change is changes[-1]:
                n_before = chunks.n_before(change.start) + len(new)
            chunks.replace(change.start, change.end, new)
    text = chunks.text
    before = split_lines(text[:n_before])
    return text, Place(len(before) - 1, len(before[-1]))


class _Chunk:
    """A piece of text, the number of line ends in it, and its width in the editor's units."""

    __slots__ = ("n_ends", "text", "width")

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.text = text
        self.n_ends = len(_LINE_END.findall(text)) if "\r" in text else text.count("\n")
        self.width = to_character(text, len(text), encoding)


class _Chunks:
    """A text in pieces of about the same size; no line end is in two of them."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self._encoding: Encoding = encoding
        self._size = max(_MIN_CHUNK, len(text) // _N_CHUNKS)
        self._chunks = self._cut(text)

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self._chunks)

    def n_before(self, place: Place) -> int:
        """Characters."""
        at, i = self._along(*self._start_of(place.line), place.character)
        return sum(len(chunk.text) for chunk in self._chunks[:at]) + i

    def replace(self, start: Place, end: Place, text: str) -> None:
        line = self._start_of(start.line)
        first, i = self._along(*line, start.character)
        if end.line != start.line:
            line = self._start_of(end.line)
        last, j = self._along(*line, end.character) if end != start else (first, i)
        if (last, j) < (first, i):
            last, j = first, i
        chunks = self._chunks
        text = chunks[first].text[:i] + text + chunks[last].text[j:]
        # A line end may have come into being where two pieces meet.
        if first > 0 and chunks[first - 1].text.endswith("\r"):
            first -= 1
            text = chunks[first].text + text
        if last + 1 < len(chunks) and chunks[last + 1].text.startswith("\n"):
            last += 1
            text += chunks[last].text
        is_all = first == 0 and last + 1 == len(chunks)
        chunks[first : last + 1] = self._cut(text) if text or is_all else []

    def _cut(self, text: str) -> list[_Chunk]:
        """At least one piece."""
        if len(text) <= 2 * self._size:
            return [_Chunk(text, self._encoding)]
        pieces: list[_Chunk] = []
        at = 0
        while at < len(text):
            end = at + self._size
            end += text[end - 1 : end + 1] == "\r\n"
            pieces.append(_Chunk(text[at:end], self._encoding))
            at = end
        return pieces

    def _along(self, at: int, i: int, left: int) -> tuple[int, int]:
        """Piece, and index in it, of the column `left` of a line that starts at the one given."""
        while True:
            chunk = self._chunks[at]
            is_last = at + 1 == len(self._chunks)
            if i == 0 and chunk.n_ends == 0 and left > chunk.width and not is_last:
                left -= chunk.width
                at += 1
                continue
            end = _end_of_line(chunk.text, i)
            rest = chunk.text[i:end]
            if end < len(chunk.text) or is_last:
                return at, i + to_index(rest, left, self._encoding)
            width = to_character(rest, len(rest), self._encoding)
            if left <= width:
                return at, i + to_index(rest, left, self._encoding)
            left -= width
            at, i = at + 1, 0

    def _start_of(self, line: int) -> tuple[int, int]:
        """Piece, and index in it; the end of the text where it has no such line."""
        left = line
        for at, chunk in enumerate(self._chunks):
            if left <= chunk.n_ends:
                i = _after_ends(chunk.text, left)
                has_more = i == len(chunk.text) and at + 1 < len(self._chunks)
                return (at + 1, 0) if has_more else (at, i)
            left -= chunk.n_ends
        return len(self._chunks) - 1, len(self._chunks[-1].text)


def _end_of_line(text: str, start: int) -> int:
    """Before its line end, or where the text ends."""
    ends = [end for mark in "\r\n" if (end := text.find(mark, start)) >= 0]
    return min(ends, default=len(text))


def _after_ends(text: str, n: int) -> int:
    """Index behind so many line ends."""
    if n == 0:
        return 0
    if "\r" not in text:
        return len(text) - len(text.split("\n", n)[-1])
    for k, found in enumerate(_LINE_END.finditer(text), 1):
        if k == n:
            return found.end()
    raise AssertionError
