"""Documents whose lines are so long that each key would copy them for longer than the editor waits:
they are left alone, with a reason, until all of their text is sent again."""

from __future__ import annotations

import pytest

from codespec.limits import LINE_CHARS
from codespec_lsp.changes import Change
from codespec_lsp.documents import LONG_LINE, Document
from codespec_lsp.positions import DocumentPlace, Encoding
from tests.rpc import LspClient

URI = "file:///long.js"
LONG = {
    "ascii": "1,2,3,4," * (LINE_CHARS // 8 + 1),
    "accents": "é" * (LINE_CHARS + 1),
    "emoji": "\U0001f600" * (LINE_CHARS + 1),
    "last of many": "x = 1\n" * 1000 + "x" * (LINE_CHARS + 1) + "\r\n",
    "returns": "x = 1\r" * 1000 + "x" * (LINE_CHARS + 1) + "\r",
    "50 MB": "x" * 50_000_000,
}


def key(line: int, character: int, text: str = "a") -> Change:
    return Change(text, DocumentPlace(line, character), DocumentPlace(line, character))


@pytest.mark.parametrize("name", LONG)
def test_of_a_line_that_is_too_long_nothing_is_kept(name: str) -> None:
    document = Document(URI, "javascript", 1, LONG[name])
    for character in (0, 10, LINE_CHARS, 50_000_000):
        document.apply([key(0, character)], "utf-16")
        document.apply([key(0, character)] * 1000, "utf-16")
        assert (document.text, document.why_alone) == ("", LONG_LINE)
    document.apply([Change("short"), key(0, 5)], "utf-16")
    assert (document.text, document.why_alone) == ("shorta", "")


@pytest.mark.parametrize("n_changes", [1, 1000])
def test_a_line_may_become_too_long(n_changes: int) -> None:
    document = Document(URI, "javascript", 1, "x" * (LINE_CHARS - 1) + "\ny")
    document.apply([key(1, 0)] * n_changes, "utf-16")
    assert document.why_alone == ""
    document.apply([key(0, 3)] * n_changes, "utf-16")
    assert (document.text, document.why_alone) == ("", LONG_LINE)


def test_two_lines_may_become_one_that_is_too_long() -> None:
    half = "x" * (LINE_CHARS // 2 + 1)
    document = Document(URI, "javascript", 1, f"{half}\n{half}")
    assert document.why_alone == ""
    document.apply([Change("", DocumentPlace(0, len(half)), DocumentPlace(1, 0))], "utf-16")
    assert document.why_alone == LONG_LINE


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_many_cursors_in_a_long_line_are_one_edit(encoding: Encoding) -> None:
    """In short lines as many edits are made one by one."""
    text = "1,2,3,4," * (LINE_CHARS // 16)
    document = Document(URI, "javascript", 1, text + "\nend")
    places = [8 * n for n in range(150)]
    document.apply([key(0, at + n) for n, at in enumerate(places)], encoding)
    wanted = "".join(f"a{text[8 * n : 8 * n + 8]}" for n in range(150)) + text[1200:]
    assert document.text == wanted + "\nend"
    assert document.edited == DocumentPlace(0, places[-1] + 150)


@pytest.mark.parametrize("name", LONG)
def test_an_editor_is_told_why(scripted: LspClient, name: str) -> None:
    scripted.open(URI, LONG[name], "javascript")
    assert scripted.complete(URI, 0, 10) == []
    scripted.wait_for(lambda m: LONG_LINE in str(m["params"]))
    at = {"line": 0, "character": 10}
    for version in range(2, 5):
        scripted.change(URI, version, {"range": {"start": at, "end": at}, "text": "a"})
        assert scripted.complete(URI, 0, 11) == []
    scripted.change(URI, 5, {"text": "short"})
    (item,) = scripted.complete(URI, 0, 5)
    assert "short" in item["insertText"]
