"""Next edits as an editor sees them: in its document's own line ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from codespec.edit import Edit
from codespec.next_edit import NextEdit
from codespec_lsp.documents import Document
from codespec_lsp.next_edits.places import placed
from codespec_lsp.positions import DocumentPlace


def insertion(path: Path) -> NextEdit:
    """Two lines before the second one."""
    return NextEdit(Edit(str(path), -1, 2, 2, "x\ny\n"), str(path), "", 1, 1.0, "add_lines")


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("a\nb\n", "\n"),
        ("a\r\nb\r\n", "\r\n"),
        ("a\rb\r", "\r"),
        ("a\nb\nc\r\n", "\n"),
        ("a\r\nb\nc\n", "\r\n"),
    ],
)
def test_lines_end_as_the_documents_first_one(
    tmp_path: Path, text: str, end: str, is_open: bool
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(text.encode())
    document = Document(path.as_uri(), "python", 3, text)
    place = placed(insertion(path), {document.uri: document} if is_open else {}, "utf-16")
    assert place is not None
    assert (place.text, place.start) == (f"x{end}y{end}", DocumentPlace(1, 0))
    assert place.made.startswith("a\nx\ny\nb\n")
