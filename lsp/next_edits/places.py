"""The places of next edits, as the editor sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from codespec.index.file_words import MAX_FILE_BYTES
from codespec.index.walk import is_binary, read_file
from codespec.next_edit import NextEdit
from codespec.syntax.text import normalise

from ..documents import Document
from ..positions import DocumentPlace, Encoding, line_end_of, to_character
from ..uris import path_of


@dataclass(frozen=True, slots=True)
class EditPlace:
    """A next edit in the editor's terms.

    version: the editor's number for the document; None for a file that is not open.
    text: in the document's own line ends.
    made: all text of the document once the edit is made, \\n line ends.
    """

    uri: str
    version: int | None
    start: DocumentPlace
    end: DocumentPlace
    text: str
    made: str


def placed(
    edit: NextEdit, documents: Mapping[str, Document], encoding: Encoding
) -> EditPlace | None:
    """The edit's place in an open document, else in its file; None where its old text does not
    stand there."""
    document = documents.get(edit.edit.document) or _open_at(edit.path, documents.values())
    if document is None:
        raw = _text_of_file(edit.path)
        uri, version = Path(edit.path).as_uri(), None
    else:
        raw, uri, version = document.text, document.uri, document.version
    if raw is None:
        return None
    text, (start, end) = normalise(raw), (edit.edit.start, edit.edit.end)
    if not 0 <= start <= end <= len(text) or text[start:end] != edit.old:
        return None
    return EditPlace(
        uri,
        version,
        _place_at(text, start, encoding),
        _place_at(text, end, encoding),
        edit.edit.text.replace("\n", line_end_of(raw)),
        text[:start] + edit.edit.text + text[end:],
    )


def _open_at(path: str, documents: Iterable[Document]) -> Document | None:
    return next((document for document in documents if path_of(document.uri) == path), None)


def _text_of_file(path: str) -> str | None:
    read = read_file(path, MAX_FILE_BYTES)
    return None if read is None or is_binary(read[0]) else read[0].decode()


def _place_at(text: str, offset: int, encoding: Encoding) -> DocumentPlace:
    first = text.rfind("\n", 0, offset) + 1
    before = text[first:offset]
    return DocumentPlace(text.count("\n", 0, first), to_character(before, len(before), encoding))
