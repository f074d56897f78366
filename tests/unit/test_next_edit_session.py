"""One editor's next edits: a model that is being loaded is asked again."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from codespec.config import Settings
from codespec.edit import Edit
from codespec.next_edit import NextEdit, NextEditRequest, NextEdits, NoNextEdit
from codespec_lsp.documents import Document
from codespec_lsp.next_edits import next_edit_session
from codespec_lsp.next_edits.next_edit_session import EditAsk, NextEditSession

URI, PATH, TEXT = "file:///w/a.py", "/w/a.py", "one\ntwo\n"
FOUND = NextEdits((NextEdit(Edit(URI, 1, 4, 7, "2"), PATH, "two", 1, 0.9, "model"),), n_left=1)


class LoadingModel:
    """Is loaded after some questions; `changes` of the document come with the first of them."""

    def __init__(self, n_questions: int, changes: bool = False) -> None:
        self.n_left = n_questions
        self.n_asked = 0
        self._changes = changes
        self.document = Document(URI, "python", 1, TEXT)

    async def find(self, request: NextEditRequest, with_model: bool = False) -> NextEdits:
        if not with_model:
            return NextEdits(why=NoNextEdit.NO_PLACE)
        self.n_asked += 1
        self.n_left -= 1
        if self._changes:
            self.document.version = 2
        return FOUND if self.n_left < 0 else NextEdits(why=NoNextEdit.LOADING)

    def ask(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        monkeypatch.setattr(next_edit_session, "_AGAIN_S", 0.0)
        session = NextEditSession(self.find, {URI: self.document}, lambda: "utf-16")
        settings = msgspec.convert(
            {"edits": {"model": "some"}, "daemon": {"power": "full"}, "stats": {"enabled": False}},
            Settings,
        )
        session.configure(settings)
        question = EditAsk(URI, PATH, "/w", "python", 1, TEXT, 0, 0, False)
        answer = asyncio.run(session.propose(question))
        return [offer.edit.edit.text for offer in answer.offers]


def test_a_model_that_is_being_loaded_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LoadingModel(3)
    assert model.ask(monkeypatch) == ["2"]
    assert model.n_asked == 4


def test_it_is_not_asked_again_for_a_document_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LoadingModel(3, changes=True)
    assert model.ask(monkeypatch) == []
    assert model.n_asked == 1


def test_it_is_not_asked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_edit_session, "_LOADING_S", 0.0)
    model = LoadingModel(10)
    assert model.ask(monkeypatch) == []
    assert model.n_asked == 1
