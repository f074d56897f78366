"""Columns in all encodings against Python's own encoders; edits against plain strings."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codespec_lsp import changes
from codespec_lsp.changes import Change
from codespec_lsp.documents import Document
from codespec_lsp.positions import (
    DocumentPlace,
    Encoding,
    split_lines,
    to_character,
    to_index,
    without_end,
)

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}

# One to four bytes of UTF-8, one and two units of UTF-16, combining marks, other "line ends".
line_characters = st.sampled_from("ab é߿ह￿𐀀😀\U0010ffff\u0301\u200d\x0b\x0c\x85\u2028\u2029")
lines = st.text(line_characters, max_size=12)
texts = st.text(line_characters | st.sampled_from("\r\n"), max_size=40)
encodings = st.sampled_from(ENCODINGS)
places = st.builds(DocumentPlace, st.integers(0, 8), st.integers(0, 20))
all_changes = st.builds(Change, texts, places, places) | st.builds(Change, texts)


def units(text: str, encoding: Encoding) -> int:
    codec, width = CODECS[encoding]
    return len(text.encode(codec)) // width


@given(lines, encodings)
def test_columns_are_counts_of_code_units(line: str, encoding: Encoding) -> None:
    for index in range(len(line) + 1):
        character = units(line[:index], encoding)
        assert to_character(line, index, encoding) == character
        assert to_index(line, character, encoding) == index


@given(lines, encodings, st.integers(-3, 100))
def test_any_column_leads_into_the_line(line: str, encoding: Encoding, character: int) -> None:
    index = to_index(line, character, encoding)
    assert 0 <= index <= len(line)
    if 0 <= character <= units(line, encoding):
        # The start of the character that the column lies in.
        assert units(line[:index], encoding) <= character
        assert index == len(line) or units(line[: index + 1], encoding) > character


@given(texts)
def test_lines_end_where_the_protocol_says(text: str) -> None:
    found = split_lines(text)
    assert "".join(found) == text
    expected = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert [without_end(line) for line in found] == expected


def offset(text: str, place: DocumentPlace, encoding: Encoding) -> int:
    """The naive way to find a place."""
    found = split_lines(text)
    if place.line >= len(found):
        return len(text)
    line = without_end(found[place.line])
    return sum(map(len, found[: place.line])) + to_index(line, place.character, encoding)


@example(
    "a\rb\n", [(DocumentPlace(1, 0), DocumentPlace(1, 1), "")], "utf-8"
)  # two line ends become one
@example("a\r\n", [(DocumentPlace(0, 1), DocumentPlace(0, 1), "\r")], "utf-8")  # one becomes two
@given(texts, st.lists(st.tuples(places, places, texts), max_size=6), encodings)
def test_edits_give_the_text_that_splicing_gives(
    text: str, edits: list[tuple[DocumentPlace, DocumentPlace, str]], encoding: Encoding
) -> None:
    document = Document("file:///a", "python", 1, text)
    for start, end, new in edits:
        first = offset(text, start, encoding)
        last = max(first, offset(text, end, encoding))
        text = text[:first] + new + text[last:]
        document.replace(start, end, new, encoding)
        assert document.text == text
        # Not only the same text: the same lines, on which the next edit depends.
        snapshot = document.snapshot(DocumentPlace(10**6, 0), encoding, 10**6, 10**6)
        assert snapshot.place.line == len(split_lines(text)) - 1


@example(
    "a\r", [Change("\n", DocumentPlace(1, 0), DocumentPlace(1, 0))], "utf-8"
)  # two pieces become one end
@example("ab\rc", [Change("", DocumentPlace(1, 0), DocumentPlace(1, 1)), Change("\n")], "utf-16")
@given(texts, st.lists(all_changes, max_size=8), encodings)
def test_many_edits_at_once_are_as_one_by_one(
    text: str, edits: list[Change], encoding: Encoding
) -> None:
    document = Document("file:///a", "python", 1, text)
    document.apply(edits, encoding)
    for size in (1, 2, 5, 4096):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(changes, "_MIN_CHUNK", size)
            found, place = changes.edited(text, edits, encoding)
        assert found == document.text
        if edits and edits[-1].start is not None and "\r" not in found:
            assert place == document.edited


@given(texts, places, encodings)
def test_snapshots_split_the_text_at_the_cursor(
    text: str, place: DocumentPlace, encoding: Encoding
) -> None:
    document = Document("file:///a", "python", 1, text)
    snapshot = document.snapshot(place, encoding, 10**6, 10**6)
    cut = offset(text, place, encoding)
    assert snapshot.prefix == text[:cut].replace("\r\n", "\n").replace("\r", "\n")
    assert snapshot.suffix == text[cut:].replace("\r\n", "\n").replace("\r", "\n")
    assert offset(text, snapshot.place, encoding) == cut


@given(texts, places, st.integers(0, 20), st.integers(0, 20))
def test_snapshots_can_be_cut_short(
    text: str, place: DocumentPlace, n_left: int, n_right: int
) -> None:
    document = Document("file:///a", "python", 1, text.replace("\r", ""))
    whole = document.snapshot(place, "utf-16", 10**6, 10**6)
    cut = document.snapshot(place, "utf-16", n_left, n_right)
    assert len(cut.prefix) <= n_left
    assert len(cut.suffix) <= n_right
    assert whole.prefix.endswith(cut.prefix)
    assert whole.suffix.startswith(cut.suffix)
    assert cut.place == whole.place


def test_cut_texts_hold_whole_definitions() -> None:
    text = "".join(f"def f{n}(x):\n    if x:\n        return x\n\n" for n in range(100))
    document = Document("file:///a", "python", 1, text)
    for line in range(150, 250):
        cut = document.snapshot(DocumentPlace(line, 0), "utf-16", 1000, 500)
        assert len(cut.prefix) > 900
        assert len(cut.suffix) > 400
        assert cut.prefix.startswith("def ")
        assert cut.suffix.endswith("return x\n\n")


def test_where_a_cut_text_begins_does_not_move_with_every_key() -> None:
    """Nor where all lines are of one definition."""
    document = Document("file:///a", "java", 1, "class A {\n" + "  int x = 1;\n" * 900 + "}\n")
    n_before, starts = len("class A {\n") + 500 * len("  int x = 1;\n"), set[int]()
    for n in range(100):
        cut = document.snapshot(DocumentPlace(501, n), "utf-16", 4000, 1000)
        assert 3000 < len(cut.prefix) <= 4000
        starts.add(n_before + n - len(cut.prefix))
        document.replace(DocumentPlace(501, n), DocumentPlace(501, n), "y", "utf-16")
    assert len(starts) <= 2


def test_where_a_cut_line_begins_does_not_move_with_every_key() -> None:
    document = Document("file:///a", "javascript", 1, "x = [1]; " * 10_000)
    starts = set[int]()
    for n in range(50_000, 50_100):
        cut = document.snapshot(DocumentPlace(0, n), "utf-16", 4000, 1000)
        assert 3000 < len(cut.prefix) <= 4000
        starts.add(n - len(cut.prefix))
        document.replace(DocumentPlace(0, n), DocumentPlace(0, n), "y", "utf-16")
    assert len(starts) <= 2


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_lone_surrogates_become_replacement_characters_of_the_same_width(
    encoding: Encoding,
) -> None:
    document = Document("file:///a", "python", 1, "a\ud83db\n")
    assert document.text == "a\ufffdb\n"
    column = {"utf-8": 4, "utf-16": 2, "utf-32": 2}[encoding]
    snapshot = document.snapshot(DocumentPlace(0, column), encoding, 100, 100)
    assert (snapshot.prefix, snapshot.suffix) == ("a\ufffd", "b\n")
    # A pair spelt as two escapes is one character.
    document.replace_all("\ud83d\ude00")
    assert document.text == "😀"


@pytest.mark.parametrize(
    ("text", "line_end"), [("a\r\nb\n", "\r\n"), ("a\nb\r\n", "\n"), ("a", "\n"), ("a\rb", "\r")]
)
def test_the_first_line_says_how_lines_end(text: str, line_end: str) -> None:
    document = Document("file:///a", "python", 1, text)
    assert document.snapshot(DocumentPlace(0, 0), "utf-16", 9, 9).line_end == line_end
