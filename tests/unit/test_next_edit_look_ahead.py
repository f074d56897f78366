"""Next edits that are looked for before the editor asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec
import pytest

from codespec.config import Settings
from codespec.edit import Edit
from codespec.next_edit import NextEdit, NextEditRequest, NextEdits
from codespec_lsp.documents import Document
from codespec_lsp.next_edits import look_ahead
from codespec_lsp.next_edits.look_ahead import MAX_UNUSED, LookAhead
from codespec_lsp.next_edits.next_edit_session import EditAsk, NextEditSession

URI = "file:///w/a.py"
TEXT = "one\ntwo\n"


class Daemon:
    """Answers questions with the version that they are about. asked: these versions."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.cancelled: list[int] = []

    async def find(self, request: NextEditRequest, with_model: bool = False) -> NextEdits:
        self.asked.append(request.version)
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.cancelled.append(request.version)
            raise
        edit = Edit(URI, request.version, 4, 7, f"{request.version}")
        return NextEdits((NextEdit(edit, "/w/a.py", "two", 1, 0.9, "replace"),), n_left=1)


def question(version: int, line: int = 0, text: str = TEXT) -> NextEditRequest:
    cursor = sum(len(each) + 1 for each in text.split("\n")[:line])
    return NextEditRequest(text, cursor, "/w/a.py", "/w", "python", URI, version)


async def changed(ahead: LookAhead, version: int) -> None:
    """A change, and the time until what is looked for is found."""
    ahead.begin_soon(lambda: question(version))
    await asyncio.sleep(0.01)


def version_of(found: NextEdits) -> int:
    return found.edits[0].edit.version


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_ahead, "SOON_S", 0.0)


@pytest.mark.asyncio
async def test_what_an_editor_is_about_to_ask_is_asked_once() -> None:
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    await ahead.find(question(1))
    await changed(ahead, 2)
    assert daemon.asked == [1, 2]
    assert version_of(await ahead.find(question(2))) == 2
    assert daemon.asked == [1, 2]
    # The answer is given once: another question is one about the texts as they are then.
    await ahead.find(question(2))
    assert daemon.asked == [1, 2, 2]


@pytest.mark.asyncio
async def test_an_editor_that_asks_while_it_is_looked_for_gets_that_answer() -> None:
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    await ahead.find(question(1))
    ahead.begin(question(2))
    assert version_of(await ahead.find(question(2))) == 2
    assert daemon.asked == [1, 2]


@pytest.mark.asyncio
async def test_an_editor_that_does_not_wait_is_answered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(look_ahead, "SOON_S", 60.0)
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    await ahead.find(question(1))
    await changed(ahead, 2)
    assert version_of(await ahead.find(question(2))) == 2
    assert daemon.asked == [1, 2]


@pytest.mark.parametrize(
    "asked",
    [
        question(3),
        question(2, line=1),
        question(2, text="two\none\n"),
        replace(question(2), n_most=100),
        replace(question(2), bar=0.9),
    ],
)
@pytest.mark.asyncio
async def test_another_question_gets_an_answer_of_its_own(asked: NextEditRequest) -> None:
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    await ahead.find(question(1))
    await changed(ahead, 2)
    assert version_of(await ahead.find(asked)) == asked.version
    assert daemon.asked == [1, 2, asked.version]


@pytest.mark.asyncio
async def test_after_an_accepted_edit_the_cursor_may_be_elsewhere() -> None:
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    ahead.begin(question(2), anywhere=True)
    await ahead.find(question(2, line=1))
    assert daemon.asked == [2]


@pytest.mark.asyncio
async def test_a_change_ends_what_was_looked_for_before_it() -> None:
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    await ahead.find(question(1))
    ahead.begin(question(2))
    await asyncio.sleep(0)
    ahead.begin_soon(lambda: question(3))
    await changed(ahead, 4)
    assert (daemon.asked, daemon.cancelled) == ([1, 2, 4], [2])
    assert version_of(await ahead.find(question(4))) == 4


@pytest.mark.asyncio
async def test_an_old_answer_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_ahead, "FRESH_S", 0.0)
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    await ahead.find(question(1))
    await changed(ahead, 2)
    await ahead.find(question(2))
    assert daemon.asked == [1, 2, 2]


@pytest.mark.asyncio
async def test_nothing_is_looked_for_where_nobody_asks() -> None:
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    await changed(ahead, 1)
    assert daemon.asked == []
    await ahead.find(question(1))
    for version in range(2, MAX_UNUSED + 6):
        await changed(ahead, version)
    assert daemon.asked == [1, *range(2, MAX_UNUSED + 2)]
    await ahead.find(question(90))
    await changed(ahead, 91)
    assert daemon.asked[-2:] == [90, 91]


@pytest.mark.asyncio
async def test_nothing_goes_on_after_the_end() -> None:
    daemon = Daemon()
    ahead = LookAhead(daemon.find)
    await ahead.find(question(1))
    ahead.begin(question(2))
    await asyncio.sleep(0)
    await ahead.close()
    ahead.begin_soon(lambda: question(3))
    await ahead.close()
    await asyncio.sleep(0.01)
    assert (daemon.asked, daemon.cancelled) == ([1, 2], [2])


@pytest.mark.parametrize(("on_battery", "n_ahead"), [(False, 1), (True, 0)])
def test_power_is_saved(monkeypatch: pytest.MonkeyPatch, on_battery: bool, n_ahead: int) -> None:
    monkeypatch.setattr("codespec.system.power.on_battery", lambda: on_battery)
    daemon, document = Daemon(), Document(URI, "python", 1, TEXT)
    session = NextEditSession(daemon.find, {URI: document}, lambda: "utf-16")
    session.configure(msgspec.convert({"stats": {"enabled": False}}, Settings))

    def asking(uri: str) -> EditAsk:
        version, text = document.version, document.text
        return EditAsk(uri, "/w/a.py", "/w", "python", version, text, 0, 0, everywhere=False)

    async def type_and_ask() -> list[int]:
        await session.propose(asking(URI))
        document.version = 2
        session.look_ahead(URI, asking)
        await asyncio.sleep(0.01)
        n_before = len(daemon.asked)
        answer = await session.propose(asking(URI))
        await session.close()
        assert [offer.edit.edit.version for offer in answer.offers] == [2]
        return daemon.asked[1:n_before]

    assert asyncio.run(type_and_ask()) == [2] * n_ahead
    assert daemon.asked == [1, 2]
