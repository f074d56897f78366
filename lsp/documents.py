"""The open documents, kept in step with the editor edit by edit.

A document is a list of lines: an edit replaces a few of them, so its cost hardly depends on the
size of the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from codespec.edit import Edit
from codespec.limits import LINE_CHARS

from .changes import MANY, Change, edited
from .positions import (
    DocumentPlace,
    Encoding,
    line_end_of,
    split_lines,
    to_character,
    to_index,
    well_formed,
    without_end,
)

LONG_LINE = f"the document has a line of over {LINE_CHARS:,} characters: it is left alone"
_MANY_CHARS = 4 << 20
_INDENTED_OR_CLOSING = ("", *" \t\r\n\f)]}")


@dataclass(frozen=True, slots=True)
class SelectedCompletion:
    """The entry of the editor's popup that is selected: `text` would replace start to end."""

    start: DocumentPlace
    end: DocumentPlace
    text: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document as it was when a request came: its text with \\n line ends around the cursor, or
    around the end of the selected popup entry as if it had been accepted.

    version:  the editor's number for this state of the document.
    place:    the cursor, within the document even if the editor's was not.
    start, end: the text that an answer replaces, on the cursor's line; empty without a selection.
    offset:   index of `start` in the document, in characters, see `Edit`.
    replaced: the text from `start` to `end`.
    selected: the text that an answer begins with; "" without a selection.
    line_end: the document's own line end.
    after_deletion: True if the last change only deleted text of this line, more than indentation.
    """

    uri: str
    version: int
    language_id: str
    prefix: str
    suffix: str
    place: DocumentPlace
    start: DocumentPlace
    end: DocumentPlace
    offset: int
    replaced: str
    selected: str
    line_end: str
    after_deletion: bool

    @property
    def begin(self) -> int:
        """Offset of the prefix in the document as if a selected entry had been accepted; negative
        where text of other cells comes first."""
        return self.offset + len(self.selected) - len(self.prefix)

    def insertion(self, text: str, n_after: int = 0) -> Edit:
        """The edit that inserts `text` at the cursor, behind a selected entry, in place of
        `n_after` characters of the suffix."""
        end = self.offset + len(self.replaced) + n_after
        return Edit(self.uri, self.version, self.offset, end, self.selected + text)

    def after(self, edit: Edit) -> Snapshot:
        """The document once an `insertion` was made. Its columns are wrong, and its version is a
        guess: neither is sent to an editor."""
        at = len(self.prefix) - len(self.selected)
        n_after = edit.end - self.offset - len(self.replaced)
        place = DocumentPlace(self.start.line + edit.text.count("\n"), 0)
        return replace(
            self,
            version=self.version + 1,
            prefix=self.prefix[:at] + edit.text,
            suffix=self.suffix[n_after:],
            place=place,
            start=place,
            end=place,
            offset=self.offset + len(edit.text),
            replaced="",
            selected="",
            after_deletion=False,
        )

    def back(self, n: int) -> Snapshot:
        """The snapshot with the cursor `n` characters before, which are brackets or quotes, one
        column wide each. Without a selection."""
        at = len(self.prefix) - n
        place = DocumentPlace(self.place.line, self.place.character - n)
        return replace(
            self,
            prefix=self.prefix[:at],
            suffix=self.prefix[at:] + self.suffix,
            place=place,
            start=place,
            end=place,
            offset=self.offset - n,
        )

    def range_of(self, edit: Edit, encoding: Encoding) -> tuple[DocumentPlace, DocumentPlace]:
        """(start, end) of an edit of this document and version, in the editor's units. The edit
        lies within the snapshot's text."""
        return self._place_at(edit.start, encoding), self._place_at(edit.end, encoding)

    def _place_at(self, offset: int, encoding: Encoding) -> DocumentPlace:
        n = offset - self.offset
        if n >= len(self.replaced):
            return _along(self.end, self.suffix[: n - len(self.replaced)], encoding)
        if n >= 0:
            return _along(self.start, self.replaced[:n], encoding)
        end = len(self.prefix) - len(self.selected)
        between = self.prefix[end + n : end]
        if "\n" not in between:
            width = to_character(between, len(between), encoding)
            return DocumentPlace(self.start.line, self.start.character - width)
        line = self.prefix[self.prefix.rfind("\n", 0, end + n) + 1 : end + n]
        return _along(DocumentPlace(self.start.line - between.count("\n"), 0), line, encoding)


def _along(start: DocumentPlace, text: str, encoding: Encoding) -> DocumentPlace:
    """The end of a `text` that begins at `start`."""
    line = text[text.rfind("\n") + 1 :]
    width = to_character(line, len(line), encoding)
    if len(line) == len(text):
        return DocumentPlace(start.line, start.character + width)
    return DocumentPlace(start.line + text.count("\n"), width)


@dataclass(frozen=True, slots=True)
class _Around:
    """The text around a line, with \\n line ends, which stays the same with each key typed in it.

    above: the lines from `first` to before `line`.
    below: the lines after `line`, to before `last`.
    n_before: characters in the lines before `first`.
    """

    first: int
    line: int
    last: int
    n_before: int
    above: str
    below: str


class Document:
    """An open document: its lines, with their ends, as the editor has them."""

    def __init__(self, uri: str, language_id: str, version: int, text: str) -> None:
        self.uri = uri
        self.language_id = language_id
        self.version = version
        self.shrank = False
        """True if the last change only deleted text, more than indentation."""
        self.edited = DocumentPlace(0, 0)
        """The end of the last edit, in characters: most likely the cursor's place."""
        self.why_alone = ""
        """The reason why its text is not kept, until all of it is replaced; "" where it is kept."""
        self.replace_all(text)

    @property
    def n_chars(self) -> int:
        """Number of characters, as the document spells its line ends."""
        return self._n_chars

    @property
    def n_lines(self) -> int:
        return len(self._lines)

    @property
    def text(self) -> str:
        """The whole text, with its own line ends."""
        return "".join(self._lines)

    def lines(self, first: int, last: int) -> str:
        """Text of the lines from `first` to before `last`, with \\n line ends."""
        return _newlines("".join(self._lines[first:last]))

    def apply(self, changes: Sequence[Change], encoding: Encoding) -> None:
        """Apply the changes, one after another."""
        if self.why_alone and all(change.start is not None for change in changes):
            return
        if len(changes) < MANY and self._n_copied(changes) <= max(_MANY_CHARS, 2 * self._n_chars):
            shrank = bool(changes)
            for change in changes:
                shrank = self._apply(change, encoding) and shrank
        else:
            shrank = not any(change.text for change in changes)
            text, place = edited(self.text, changes, encoding)
            self.replace_all(text)
            self.edited, self._edited_line = place, place.line
        self.shrank = shrank

    def _apply(self, change: Change, encoding: Encoding) -> bool:
        """Apply one change. Returns: True if it only deleted text, more than indentation: a key may
        have the editor indent its line anew."""
        if change.start is not None and change.end is not None:
            takes_text = not change.text and change.start != change.end
            if takes_text and change.start.line == change.end.line:
                takes_text = not self._are_blanks_before(change.end, encoding)
            self.replace(change.start, change.end, change.text, encoding)
            return takes_text
        n_before = self._n_chars
        self.replace_all(change.text)
        return len(change.text) < n_before

    def _n_copied(self, changes: Sequence[Change]) -> int:
        """About the number of characters that are copied when the changes are applied one by one:
        the lines that they begin in."""
        lines = [change.start.line for change in changes if change.start is not None]
        return sum(len(self._lines[line]) for line in lines if line < len(self._lines))

    def replace_all(self, text: str) -> None:
        """Another text for the whole document; none is kept of one with a line that is too long."""
        text = well_formed(text)
        self._lines = split_lines(text)
        self._n_chars = len(text)
        self.why_alone = ""
        if self._n_chars > LINE_CHARS and max(map(len, self._lines)) > LINE_CHARS:
            self._leave()
        self._edited_line: int | None = None  # unknown
        self._around: _Around | None = None
        self._counted = 0, 0  # a line, and the characters before it

    def _leave(self) -> None:
        self.replace_all("")
        self.why_alone = LONG_LINE

    def replace(
        self, start: DocumentPlace, end: DocumentPlace, text: str, encoding: Encoding
    ) -> None:
        """Apply one edit. Places outside the document mean its nearest place."""
        first, i = self._locate(start, encoding)
        last, j = self._locate(end, encoding)
        if (last, j) < (first, i):
            last, j = first, i
        text = well_formed(text)
        changed = self._lines[first][:i] + text + self._lines[last][j:]
        self._n_chars += len(changed) - sum(map(len, self._lines[first : last + 1]))
        inserted = split_lines(text)
        n_lines = len(inserted) - 1
        self.edited = DocumentPlace(first + n_lines, len(inserted[-1]) + (0 if n_lines else i))
        self._edited_line = self.edited.line
        if first > 0 and self._lines[first - 1].endswith("\r"):
            # This \r may become the first half of a line end.
            first -= 1
            changed = self._lines[first] + changed
        if first < self._counted[0]:
            self._counted = 0, 0
        lines = split_lines(changed)
        if last + 1 < len(self._lines):
            lines.pop()  # `changed` ends with a line end, so the rest of it is empty
        if self._around is None or not self._around.line == first == last or len(lines) != 1:
            self._around = None
        self._lines[first : last + 1] = lines
        if len(changed) > LINE_CHARS and max(map(len, lines), default=0) > LINE_CHARS:
            self._leave()

    def snapshot(
        self,
        place: DocumentPlace,
        encoding: Encoding,
        max_prefix: int,
        max_suffix: int,
        selection: SelectedCompletion | None = None,
    ) -> Snapshot:
        """The snapshot at a place, with at most about max_prefix and max_suffix characters around.

        Cut texts begin and end with whole lines where lines are not enormous, see `_first_within`.
        A selection that is not on the cursor's line, around the cursor, does not count.
        Cost: linear in the text taken."""
        line, index = self._locate(place, encoding)
        here = self._lines[line]
        start = end = index
        selected = ""
        if selection is not None and not {*"\r\n"} & {*selection.text}:
            first, i = self._locate(selection.start, encoding)
            last, j = self._locate(selection.end, encoding)
            if first == last == line and i <= index <= j:
                start, end, selected = i, j, well_formed(selection.text)
        first = self._first_within(line, max_prefix - start)
        last = self._last_within(line + 1, max_suffix - (len(here) - end))
        around = self._lines_around(first, line, last)
        # The text taken of an enormous line, too, begins at the same place while the user types.
        step = max(1, max_prefix // 8)
        begin = -(-max(0, start - max_prefix) // step) * step
        before, after = here[begin:start], here[end : end + max_suffix]
        return Snapshot(
            uri=self.uri,
            version=self.version,
            language_id=self.language_id,
            prefix=around.above + _newlines(before) + selected,
            suffix=_newlines(after) + around.below,
            place=DocumentPlace(line, to_character(here, index, encoding)),
            start=DocumentPlace(line, to_character(here, start, encoding)),
            end=DocumentPlace(line, to_character(here, end, encoding)),
            offset=around.n_before + len(around.above) + start,
            replaced=here[start:end],
            selected=selected,
            line_end=self._line_end(),
            after_deletion=self.shrank and self._edited_line in (line, None),
        )

    def _lines_around(self, first: int, line: int, last: int) -> _Around:
        known = self._around
        if known is None or (known.first, known.line, known.last) != (first, line, last):
            above, below = self.lines(first, line), self.lines(line + 1, last)
            n_before = self._n_chars_before(first)
            known = self._around = _Around(first, line, last, n_before, above, below)
        return known

    def _n_chars_before(self, line: int) -> int:
        """Number of characters in the lines before this one, each line end being one. Cost: linear
        in the distance to the line of the last call, unless lines before that changed."""
        known, n_chars = self._counted
        between = "".join(self._lines[min(known, line) : max(known, line)])
        n_between = len(between) - between.count("\r\n")
        n_chars += n_between if line >= known else -n_between
        self._counted = line, n_chars
        return n_chars

    def _first_within(self, end: int, n_chars: int) -> int:
        """The first line of the text before line `end` that fits `n_chars` characters.

        A cut text begins where a definition may begin: it is then parsed as in the whole document.
        Where its first half has no such line, the first line at least stays the same while the user
        types: with another one, the KV cache would hold nothing of the text.
        """
        if self._n_chars <= n_chars:
            return 0
        first = end
        while first > 0 and (n_chars := n_chars - len(self._lines[first - 1])) >= 0:
            first -= 1
        if first == 0:
            return 0
        n_lines = end - first
        for at in range(first, end - n_lines // 2):
            if _may_define(self._lines[at]):
                return at
        step = 1 << max(0, n_lines.bit_length() - 3)
        return min(end, -(-first // step) * step)

    def _last_within(self, start: int, n_chars: int) -> int:
        """The line before which a text ends that begins with the line `start`, likewise."""
        n_lines = len(self._lines)
        if self._n_chars <= n_chars:
            return n_lines
        last = start
        while last < n_lines and (n_chars := n_chars - len(self._lines[last])) >= 0:
            last += 1
        if last == n_lines:
            return last
        later = range(last, start + (last - start) // 2, -1)
        return next((at for at in later if _may_define(self._lines[at])), last)

    def _locate(self, place: DocumentPlace, encoding: Encoding) -> tuple[int, int]:
        """(line, index in it), within the document."""
        if place.line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        line = max(0, place.line)
        return line, to_index(without_end(self._lines[line]), place.character, encoding)

    def _are_blanks_before(self, place: DocumentPlace, encoding: Encoding) -> bool:
        """True if only blanks stand before the place in its line."""
        line, index = self._locate(place, encoding)
        return not self._lines[line][:index].strip()

    def _line_end(self) -> str:
        return line_end_of(self._lines[0])


def _may_define(line: str) -> bool:
    """True if a definition at the outermost level may begin with this line."""
    return line[:1] not in _INDENTED_OR_CLOSING


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
