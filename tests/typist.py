"""A user who types, an editor and a model, around a session of the language server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codespec.config import load_settings
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.wire import State, StateChanged
from codespec.requests import Completion, CompletionRequest, OnProgress, Progress
from codespec.types import Trace
from codespec_lsp.changes import Change
from codespec_lsp.documents import Document
from codespec_lsp.positions import DocumentPlace
from codespec_lsp.suggestions.answers import Answer, Ask, Offer
from codespec_lsp.suggestions.session import Session


async def moments() -> None:
    """Let tasks that have begun end, unless they wait."""
    for _ in range(4):
        await asyncio.sleep(0)


class Typing:
    """A user who types at the end of a document, an editor, and a model that says "zzz\\n"."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, grows: bool = False, **limits: Any
    ) -> None:
        """grows: True if the editor can show more of a suggestion than it asked for."""
        self.asked: list[str] = []
        """Lines before the cursor that the model was asked about."""
        self.ended: list[str] = []
        """Those of these lines whose request was cancelled."""
        self.free = asyncio.Event()
        """Cleared: the model says nothing yet."""
        self.free.set()
        self.told: list[OnProgress] = []
        """Listener to the progress of each of these requests."""
        self.requests: list[CompletionRequest] = []
        self.finished: list[str] = []
        """The model's next text, in place of its usual one."""
        self.grown: list[str] = []
        """Reports on suggestions that the editor shows."""
        settings = load_settings({"completion": limits, "stats": {"enabled": False}}, env={})

        async def complete(
            client: AsyncClient, request: CompletionRequest, tell: OnProgress, *_: Any
        ) -> Completion:
            line = request.prefix.rpartition("\n")[2]
            self.asked.append(line)
            self.told.append(tell)
            self.requests.append(request)
            try:
                await asyncio.sleep(0)
                await self.free.wait()
                if self.finished:
                    return Completion(request.insertion(self.finished.pop()), finish="stop")
            except asyncio.CancelledError:
                self.ended.append(line)
                raise
            return Completion(request.insertion("zzz\n"), trace=Trace(ms=7.0))

        monkeypatch.setattr(AsyncClient, "connect", lambda _: None)
        monkeypatch.setattr(AsyncClient, "complete", complete)

        def grew(_ask: Ask, _id: str, offer: Offer) -> None:
            self.grown.append(offer.edit.text)

        on_grown = grew if grows else None
        self.session = Session(settings, lambda _: None, lambda *_: "", on_grown=on_grown)
        self.be("ready")
        self.document = Document("file:///a.py", "python", 1, "import os\n")
        self.document.edited = DocumentPlace(1, 0)

    def switch_off(self) -> None:
        self.session.configure(
            load_settings({"completion": {"enabled": False}, "stats": {"enabled": False}}, env={})
        )

    def be(self, state: State) -> None:
        self.session._state_changed(StateChanged(state=state, model="m"))  # pyright: ignore[reportPrivateUsage]

    def say(self, text: str) -> None:
        """The model, of the last request."""
        lines = self.requests[-1].insertion(text.rpartition("\n")[0])
        self.told[-1](Progress(text, lines))

    def finish(self, text: str) -> None:
        """The model, of all it is at; not of what comes then."""
        self.finished = [text]
        self.free.set()
        asyncio.get_running_loop().call_soon(self.free.clear)

    def at(self, n_back: int = 0, invoked: bool = False) -> Ask:
        place = self.document.edited
        where = DocumentPlace(place.line, place.character - n_back)
        return Ask(self.document.snapshot(where, "utf-32", 1000, 1000), "", "", invoked)

    def insert(self, text: str) -> None:
        """Insert text, and report the change as the server does."""
        at = self.document.edited
        self.document.replace(at, at, text, "utf-32")
        self.document.version += 1
        if self.session.is_generating(self.document.uri):
            self.session.changed(self.at().snapshot)

    def delete(self, n_chars: int) -> None:
        """Before the cursor."""
        end = self.document.edited
        start = DocumentPlace(end.line, end.character - n_chars)
        self.document.apply([Change("", start, end)], "utf-32")
        self.document.version += 1
        if self.session.is_generating(self.document.uri):
            self.session.changed(self.at().snapshot)

    def press(self, key: str) -> None:
        self.insert(key)
        self.session.key_pressed(self.at())

    async def key(self, text: str) -> None:
        self.press(text)
        await moments()

    async def waiting(self, text: str = "", *, invoked: bool = False) -> asyncio.Task[Answer]:
        """A key, if any, and the request after it, which the model has."""
        if text:
            await self.key(text)
        request = asyncio.ensure_future(self.ask(invoked=invoked))
        await moments()
        return request

    async def typed_wrongly(self, text: str) -> None:
        """Asked about, and taken back."""
        request = await self.waiting(text)
        self.delete(len(text))
        await request

    async def take(self, answer: Answer) -> None:
        """The suggestion, whole."""
        self.session.accepted(answer.offers[0].id)
        self.insert(answer.offers[0].edit.text)
        await moments()

    async def ask(self, n_back: int = 0, invoked: bool = False) -> Answer:
        return await self.session.suggest(self.at(n_back, invoked))

    async def typed(self, text: str) -> Answer:
        await self.key(text)
        return await self.ask()
