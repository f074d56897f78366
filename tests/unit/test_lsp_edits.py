"""Answers as edits of the version that was asked about."""

from __future__ import annotations

import pytest

from codespec.edit import Edit
from codespec_lsp.documents import Document, SelectedCompletion
from codespec_lsp.positions import DocumentPlace
from codespec_lsp.suggestions.suggestion import Suggestion
from codespec_lsp.suggestions.typed_along import rest_of
from tests.typist import Typing


@pytest.mark.asyncio
async def test_an_answer_for_an_older_version_becomes_one_of_the_version_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    typing.free.clear()
    older = await typing.waiting("a")
    asked = typing.requests[-1]
    at = len("import os\na")
    assert (asked.document, asked.version, asked.start) == ("file:///a.py", 2, 0)
    typing.say("zz\nz")
    typing.insert("z")
    newer = await typing.waiting()
    typing.finish("zz\nzz")
    assert (await older).offers == ()
    (offer,) = (await newer).offers
    assert typing.asked == ["a"]
    assert offer.edit == Edit("file:///a.py", 3, at + 1, at + 1, "z\nzz")
    # Gone back to, it is one of a later version yet.
    typing.delete(1)
    (offer,) = (await typing.ask()).offers
    assert offer.edit == Edit("file:///a.py", 4, at, at, "zz\nzz")
    await typing.session.close()


@pytest.mark.asyncio
async def test_finished_lines_are_an_edit_of_the_version_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch, deadline_auto_ms=40)
    typing.free.clear()
    request = await typing.waiting("a")
    typing.say("one\ntw")
    at = len("import os\na")
    (offer,) = (await request).offers
    assert offer.edit == Edit("file:///a.py", 2, at, at, "one")
    typing.insert("o")
    (offer,) = (await typing.ask()).offers
    assert offer.edit == Edit("file:///a.py", 3, at + 1, at + 1, "ne")
    await typing.session.close()


def test_alternatives_are_edits_of_one_place() -> None:
    document = Document("file:///a.py", "python", 1, "\U0001f600 = \r\n")
    made = Suggestion(document.snapshot(DocumentPlace(0, 5), "utf-16", 100, 100))
    made.edits = tuple(map(made.base.insertion, ("foo()", "far", "bar")))
    made.done = True
    document.replace(DocumentPlace(0, 5), DocumentPlace(0, 5), "f", "utf-16")
    document.version = 2
    rest = rest_of(made, document.snapshot(DocumentPlace(0, 6), "utf-16", 100, 100))
    assert rest is not None
    assert rest.edits == tuple(Edit("file:///a.py", 2, 5, 5, text) for text in ("oo()", "ar"))


def test_brackets_that_the_editor_closed_are_replaced_and_nothing_else_is() -> None:
    document = Document("file:///a.py", "python", 1, "x = \r\ny\r\n")
    made = Suggestion(document.snapshot(DocumentPlace(0, 4), "utf-16", 100, 100))
    made.edits, made.done = (made.base.insertion("f(a, [b])"),), True
    document.replace(DocumentPlace(0, 4), DocumentPlace(0, 4), "f()", "utf-16")
    now = document.snapshot(DocumentPlace(0, 6), "utf-16", 100, 100)
    rest = rest_of(made, now)
    assert rest is not None
    assert rest.edits == (Edit("file:///a.py", 1, 6, 7, "a, [b])"),)
    assert now.range_of(rest.edits[0], "utf-16") == (DocumentPlace(0, 6), DocumentPlace(0, 7))


def test_an_entry_that_is_all_of_a_suggestion_is_answered_with_itself() -> None:
    document = Document("file:///a.py", "python", 1, "x = pri\n")
    made = Suggestion(document.snapshot(DocumentPlace(0, 7), "utf-16", 100, 100))
    made.edits, made.done = (made.base.insertion("nt"),), True
    selection = SelectedCompletion(DocumentPlace(0, 4), DocumentPlace(0, 7), "print")
    rest = rest_of(made, document.snapshot(DocumentPlace(0, 7), "utf-16", 100, 100, selection))
    assert rest is not None
    assert rest.edits == (Edit("file:///a.py", 1, 4, 7, "print"),)
