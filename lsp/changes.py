"""Changes of a document as editors send them: read strictly, many of them applied at once.

A message can hold tens of thousands: all that "replace all" or a formatter did. Applied one by one
to a list of lines, each change would copy its line, and a minified file has only one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codespec.limits import CHANGES

from .bounds import integer_of
from .positions import (
    DocumentPlace,
    Encoding,
    split_lines,
    to_character,
    to_index,
    well_formed,
    without_end,
)

CLOSED = ("()", "[]", "{}", '""', "''", "``")
"""Pairs that editors insert when the first character is typed, with the cursor between them."""
MANY = 200
"""Number of changes from which all at once costs less than one by one."""
_MIN_CHUNK = 4096
_N_CHUNKS = 256
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Change:
    """`text` replaces the text from `start` to `end`, or the whole document where both are None."""

    text: str
    start: DocumentPlace | None = None
    end: DocumentPlace | None = None

    @property
    def is_key(self) -> bool:
        """True if one key makes such a change: a character, with the bracket or quote that an
        editor closes it with, or a line end and its indentation, between brackets on a line of its
        own."""
        is_line_end = self.text[:1] in ("\r", "\n") and not self.text.strip()
        return (
            self.start is not None
            and self.start == self.end
            and (len(self.text) == 1 or self.text in CLOSED or is_line_end)
        )

    def cursor(self, end: DocumentPlace) -> DocumentPlace:
        """The most likely place of the cursor, in characters, after this change, which ended at
        `end`: before the brackets or quotes that the editor closes with the key."""
        if self.is_key and self.text in CLOSED:
            return DocumentPlace(end.line, end.character - 1)
        lines = [without_end(line) for line in split_lines(self.text)]
        if self.is_key and len(lines) == 3 and len(lines[1]) > len(lines[2]):
            return DocumentPlace(end.line - 1, len(lines[1]))
        return end


def as_one(changes: Sequence[Change]) -> Change | None:
    """The only change; or the one of a key whose bracket or quote the editor closes by a second
    change. None for others."""
    if len(changes) == 2:
        key, more = changes
        one = Change(key.text + more.text, key.start, key.end)
        if one.is_key and one.text in CLOSED and one.start is not None:
            within = DocumentPlace(one.start.line, one.start.character + 1)
            return one if more.start == more.end == within else None
    return changes[0] if len(changes) == 1 else None


@dataclass(frozen=True, slots=True)
class Changed:
    """Params of `textDocument/didChange`. version: None where the editor does not say it."""

    uri: str
    version: int | None
    changes: list[Change]


def read_changed(document: Any, changes: Any) -> Changed:
    """The changes of a document or cell, from JSON.

    Editors may leave out the version, which is no part of the text; and what comes before a whole
    text does not matter.

    Raises: ValueError, TypeError, KeyError where the text would be unknown.
    """
    if len(_of_type(changes, list)) > CHANGES:
        raise ValueError("too many changes")
    wholes = [i for i, change in enumerate(changes) if _is_whole(change)]
    first = wholes[-1] if wholes else 0
    said = document.get("version")
    version = integer_of(said)
    if version is None and said is not None and not wholes:
        raise TypeError("no number of a version")
    return Changed(
        _of_type(document["uri"], str),
        version,
        [_read_change(change) for change in changes[first:]],
    )


def _is_whole(change: Any) -> bool:
    """True if the change is a text for the whole document."""
    is_object = type(change) is dict and type(change.get("text")) is str
    return is_object and change.get("range") is None


def _read_change(change: Any) -> Change:
    text = _of_type(change["text"], str)
    if (where := change.get("range")) is None:
        return Change(text)
    return Change(text, _read_place(where["start"]), _read_place(where["end"]))


def _read_place(place: Any) -> DocumentPlace:
    line, character = integer_of(place["line"]), integer_of(place["character"])
    if line is None or character is None or line < 0 or character < 0:
        raise ValueError("no place of a document")
    return DocumentPlace(line, character)


def _of_type(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError(f"not {kind.__name__}")
    return value


def edited(text: str, changes: Sequence[Change], encoding: Encoding) -> tuple[str, DocumentPlace]:
    """(the text after all changes, the end of the last one in characters).

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
    return text, DocumentPlace(len(before) - 1, len(before[-1]))


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

    def n_before(self, place: DocumentPlace) -> int:
        """Number of characters before a place."""
        at, i = self._along(*self._start_of(place.line), place.character)
        return sum(len(chunk.text) for chunk in self._chunks[:at]) + i

    def replace(self, start: DocumentPlace, end: DocumentPlace, text: str) -> None:
        """Apply one edit. Places outside the text mean its nearest place."""
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
        """The pieces of a text, at least one."""
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
        """(piece, index in it) of the column `left` in the line that starts at index `i` of piece
        `at`."""
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
        """(piece, index in it) of a line's start; the end of the text where it has no such line."""
        left = line
        for at, chunk in enumerate(self._chunks):
            if left <= chunk.n_ends:
                i = _after_ends(chunk.text, left)
                has_more = i == len(chunk.text) and at + 1 < len(self._chunks)
                return (at + 1, 0) if has_more else (at, i)
            left -= chunk.n_ends
        return len(self._chunks) - 1, len(self._chunks[-1].text)


def _end_of_line(text: str, start: int) -> int:
    """Index before the line end that follows `start`, or the end of the text."""
    ends = [end for mark in "\r\n" if (end := text.find(mark, start)) >= 0]
    return min(ends, default=len(text))


def _after_ends(text: str, n: int) -> int:
    """Index behind the first `n` line ends."""
    if n == 0:
        return 0
    if "\r" not in text:
        return len(text) - len(text.split("\n", n)[-1])
    for k, found in enumerate(_LINE_END.finditer(text), 1):
        if k == n:
            return found.end()
    raise AssertionError
