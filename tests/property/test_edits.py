"""Suggestions as edits: offsets of a version's text at one end, places in an editor's units at the
other; what either end makes of the edit is the same document."""

from __future__ import annotations

from typing import get_args

from hypothesis import example, given
from hypothesis import strategies as st

from codespec.config import CompletionSettings
from codespec.edit import Edit
from codespec.requests import CompletionRequest
from codespec_lsp.documents import Document, SelectedCompletion, Snapshot
from codespec_lsp.notebooks import Notebooks
from codespec_lsp.positions import DocumentPlace, Encoding, split_lines, without_end
from codespec_lsp.suggestions.answers import Ask

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
WIDTHS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}

characters = st.sampled_from("ab é\U0001f600\U0010ffff\u0301\u2028)]") | st.sampled_from("\r\n")
texts = st.text(characters, max_size=60)
line_texts = st.text(st.sampled_from("ab é\U0001f600"), max_size=5)
places = st.builds(DocumentPlace, st.integers(0, 6), st.integers(0, 12))
encodings = st.sampled_from(ENCODINGS)
windows = st.just((10**6, 10**6)) | st.tuples(st.integers(1, 20), st.integers(1, 20))


def newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def by_offsets(text: str, edit: Edit) -> str:
    """The document as the daemon's side means it, with \\n line ends."""
    whole = newlines(text)
    assert 0 <= edit.start <= edit.end <= len(whole)
    return whole[: edit.start] + edit.text + whole[edit.end :]


def by_places(
    text: str, start: DocumentPlace, end: DocumentPlace, new: str, encoding: Encoding
) -> str:
    """The document as an editor makes it of an answer."""
    at = [_index(text, place, encoding) for place in (start, end)]
    return text[: at[0]] + new + text[at[1] :]


def _index(text: str, place: DocumentPlace, encoding: Encoding) -> int:
    codec, width = WIDTHS[encoding]
    lines = split_lines(text)
    units = without_end(lines[place.line]).encode(codec)
    assert 0 <= place.character * width <= len(units)
    within = units[: place.character * width].decode(codec)  # raises within a character
    return sum(map(len, lines[: place.line])) + len(within)


def snapshot_of(
    text: str,
    place: DocumentPlace,
    encoding: Encoding,
    window: tuple[int, int] = (10**6, 10**6),
    selection: SelectedCompletion | None = None,
) -> Snapshot:
    document = Document("file:///a.py", "python", 7, text)
    return document.snapshot(place, encoding, *window, selection)


@example("a\r\n\U0001f600b", DocumentPlace(1, 2), "utf-16", (10**6, 10**6), "x\ny")
@example("a\r\nb\r\nc = \U0001f600", DocumentPlace(2, 6), "utf-8", (3, 3), "x")
@given(texts, places, encodings, windows, texts.map(newlines))
def test_an_insertion_is_the_same_at_both_ends(
    text: str, place: DocumentPlace, encoding: Encoding, window: tuple[int, int], new: str
) -> None:
    now = snapshot_of(text, place, encoding, window)
    edit = now.insertion(new)
    assert (edit.document, edit.version, edit.text) == ("file:///a.py", 7, new)
    assert edit.start == edit.end
    start, end = now.range_of(edit, encoding)
    assert start == end == now.place
    edited = by_places(text, start, end, new.replace("\n", now.line_end), encoding)
    # Half of a line end may have stood before it, or after it.
    assert newlines(edited).replace("\n", "") == by_offsets(text, edit).replace("\n", "")
    if "\r" not in text:
        assert edited == by_offsets(text, edit)


@given(texts, places, encodings, windows, texts.map(newlines))
def test_the_engine_says_what_the_session_would(
    text: str, place: DocumentPlace, encoding: Encoding, window: tuple[int, int], new: str
) -> None:
    now = snapshot_of(text, place, encoding, window)
    request = asked_for(now)
    assert newlines(text)[request.start :].startswith(now.prefix + now.suffix)
    assert request.insertion(new) == (now.insertion(new) if new else None)


def asked_for(now: Snapshot) -> CompletionRequest:
    return Ask(now, "/a.py", "", invoked=False).request(CompletionSettings())


@given(texts, places, encodings, windows, st.data())
def test_any_range_of_the_text_that_was_taken_is_found_in_the_editor(
    text: str,
    place: DocumentPlace,
    encoding: Encoding,
    window: tuple[int, int],
    data: st.DataObject,
) -> None:
    now = snapshot_of(text, place, encoding, window)
    last = now.begin + len(now.prefix) + len(now.suffix)
    # Of a line that is cut, too, all is known that the window holds of the cursor's.
    first = now.begin + (now.prefix.find("\n") + 1 if "\n" in now.prefix else 0)
    start = data.draw(st.integers(first, last))
    end = data.draw(st.integers(start, last))
    edit = Edit(now.uri, now.version, start, end, "x")
    edited = by_places(text, *now.range_of(edit, encoding), "x", encoding)
    assert newlines(edited) == by_offsets(text, edit)


@given(line_texts, line_texts, line_texts, line_texts, st.integers(0, 3), encodings)
def test_what_a_popup_entry_stands_for_is_replaced(
    before: str, typed: str, after: str, entry: str, n_closed: int, encoding: Encoding
) -> None:
    head = "# \U0001f600\r\n"
    text = f"{head}{before}{typed}{')' * n_closed}{after}\r\nend"
    codec, width = WIDTHS[encoding]
    at = len(before.encode(codec)) // width
    cursor = at + len(typed.encode(codec)) // width
    selection = SelectedCompletion(DocumentPlace(1, at), DocumentPlace(1, cursor), entry)
    now = snapshot_of(text, DocumentPlace(1, cursor), encoding, selection=selection)
    edit = now.insertion("(x)", n_after=n_closed)
    assert by_offsets(text, edit) == newlines(f"{head}{before}{entry}(x){after}\nend")
    start, end = now.range_of(edit, encoding)
    assert (start, end) == (DocumentPlace(1, at), DocumentPlace(1, cursor + n_closed))
    # The engine reads the text with the entry in it.
    made = asked_for(now).insertion("(x)")
    assert made is not None
    assert made.start == made.end
    accepted = f"{head}{before}{entry}{')' * n_closed}{after}\r\nend"
    inserted = f"{head}{before}{entry}(x){')' * n_closed}{after}\r\nend"
    assert by_offsets(accepted, made) == newlines(inserted)
    then = now.after(edit)
    assert then.prefix + then.suffix == by_offsets(text, edit)
    assert then.offset == len(then.prefix)


def test_of_a_large_document_a_piece_is_sent_and_offsets_are_those_of_the_document() -> None:
    line = "value = function(argument)  # \U0001f600\r\n"
    text = line * 20_000 + "x = " + line
    document = Document("file:///a.py", "python", 1, text)
    for n, key in enumerate("f(a"):  # with each key, the same piece
        cursor = DocumentPlace(20_000, len("x = ") + n)
        document.replace(cursor, cursor, key, "utf-16")
        document.version += 1
        now = document.snapshot(DocumentPlace(20_000, cursor.character + 1), "utf-16", 4000, 1000)
        assert len(now.prefix) <= 4000
        edit = now.insertion("!")
        assert edit.version == n + 2
        whole = newlines(document.text)
        assert whole[edit.start - len(now.prefix) : edit.start] == now.prefix
        assert edit.start == whole.rindex("x = ") + len("x = ") + n + 1
    before = document.snapshot(DocumentPlace(20_000, 7), "utf-16", 4000, 1000)
    document.replace(DocumentPlace(0, 0), DocumentPlace(0, 0), "import os\r\n", "utf-16")
    moved = document.snapshot(DocumentPlace(20_001, 7), "utf-16", 4000, 1000)
    assert moved.insertion("!").start == before.insertion("!").start + len("import os\n")


@given(texts, st.lists(st.tuples(places, places, texts, places), max_size=6))
def test_offsets_follow_what_is_changed_anywhere(
    text: str, edits: list[tuple[DocumentPlace, DocumentPlace, str, DocumentPlace]]
) -> None:
    document = Document("file:///a.py", "python", 1, text)
    for start, end, new, cursor in edits:
        document.replace(start, end, new, "utf-8")
        now = document.snapshot(cursor, "utf-8", 5, 5)  # a line or two
        anew = snapshot_of(document.text, cursor, "utf-8")
        assert (now.offset, now.place) == (anew.offset, anew.place)
        assert anew.offset == len(anew.prefix)


def test_in_an_enormous_line_a_piece_is_sent_and_offsets_are_those_of_the_document() -> None:
    text = "a\r\n" + "\U0001f600b" * 5000 + "\r\nc"
    place = DocumentPlace(1, 3 * 4000)
    now = snapshot_of(text, place, "utf-16", (1000, 500))
    assert len(now.prefix) <= 1000
    edit = now.insertion("!")
    assert edit.start == len("a\n") + 2 * 4000
    assert now.range_of(edit, "utf-16") == (place, place)
    before = Edit(now.uri, now.version, edit.start - 2, edit.start, "")
    assert now.range_of(before, "utf-16") == (DocumentPlace(1, 3 * 4000 - 3), place)


def test_offsets_in_a_cell_are_those_of_the_cell() -> None:
    cells = {
        f"cell:{n}": Document(f"cell:{n}", "python", n, f"x{n} = \U0001f600") for n in range(3)
    }
    notebooks = Notebooks(cells)
    notebooks.open("file:///a.ipynb", list(cells))
    taken = cells["cell:1"].snapshot(DocumentPlace(0, 5), "utf-32", 1000, 1000)
    now = notebooks.joined(taken, 1000, 1000)
    assert now.prefix == "x0 = \U0001f600\nx1 = "
    request = asked_for(now)
    assert request.start == -len("x0 = \U0001f600\n")
    made = request.insertion("y")
    assert made == Edit("cell:1", 1, 5, 5, "y") == now.insertion("y")
