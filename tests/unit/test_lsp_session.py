"""Workspaces of documents, what is begun with a key, and the words for states."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest

from codespec.config import load_settings
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.wire import State, StateChanged
from codespec.errors import ConfigError
from codespec.usage.habits import MIN_SHOWN, TRIAL_EVERY
from codespec.usage.suppression import PlaceKind
from codespec_lsp.changes import Change, as_one
from codespec_lsp.documents import Document
from codespec_lsp.positions import DocumentPlace
from codespec_lsp.status import StatusReporter, status_of
from codespec_lsp.suggestions.session import Session
from codespec_lsp.uris import workspace_of
from tests.typist import Typing, moments


@pytest.mark.parametrize(
    ("path", "folders", "expected"),
    [
        ("/a/b/c.py", ["/a", "/a/b", "/x"], "/a/b"),
        ("/a/b/c.py", ["/a/bb"], ""),
        ("/a/b/c.py", [], ""),
        ("", ["/a"], "/a"),
        ("", ["/a", "/b"], ""),
    ],
)
def test_the_workspace_is_the_innermost_folder(
    path: str, folders: list[str], expected: str
) -> None:
    assert workspace_of(path, folders) == expected


@pytest.mark.asyncio
async def test_settings_that_lead_nowhere_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AsyncClient, "connect", lambda _: None)  # which would start a daemon
    lost = load_settings({"model": {"target": "~no-such-user/x.gguf"}}, env={})
    found = load_settings({"completion": {"max_tokens": 5}}, env={})
    session = Session(found, lambda _: None, lambda *_: "")
    with pytest.raises(ConfigError, match="no-such-user"):
        session.configure(lost)
    assert session.settings is found
    await session.close()
    # What was wrong from the start can be mended.
    session = Session(lost, lambda _: None, lambda *_: "")
    session.configure(found)
    assert session.settings is found
    await session.close()


def test_every_state_has_words() -> None:
    for state in get_args(State):
        status = status_of(StateChanged(state=state, reason="why"))
        assert status["message"]
        assert status["kind"] in ("Normal", "Warning", "Error", "Inactive")
        assert status["busy"] == (state in ("starting", "loading", "restarting"))
    loading = status_of(StateChanged(state="loading", progress=0.4))
    assert loading["message"] == "loading the model, 40 %"
    ready = status_of(StateChanged(state="ready", model="codespec-base"))
    assert ready == {"busy": False, "kind": "Normal", "message": "ready: codespec-base"}


def test_a_failure_is_told_with_its_reason_and_the_next_step() -> None:
    why = "the model is too large for the free memory: it needs 6.1 GB, 2.0 GB are free"
    status = status_of(StateChanged(state="failed", reason=why))
    assert status == {"busy": False, "kind": "Error", "message": f"no completions: {why}"}
    status = status_of(StateChanged(state="failed", reason=why, hint="Close other programs."))
    assert status["message"] == f"no completions: {why}. Close other programs."


def test_one_message_for_each_cause_the_worst_one_first() -> None:
    sent: list[object] = []
    status = StatusReporter(lambda params: sent.append(params["message"]))
    for _ in range(3):  # requests while nothing changes
        status.state(StateChanged(state="ready", model="m"))
        status.paused("")
    for _ in range(3):
        status.paused("file ignored by .gitignore: *.log")
        status.state(StateChanged(state="ready", model="m"))
    status.error('unknown setting "completion.max_token"')
    status.paused("")
    status.paused("switched off in the settings")
    status.error("")
    status.paused("")
    assert sent == [
        "ready: m",
        "paused: file ignored by .gitignore: *.log",
        'unknown setting "completion.max_token"',
        "paused: switched off in the settings",
        "ready: m",
    ]


@pytest.mark.asyncio
async def test_where_the_editor_asks_after_each_key_the_model_is_asked_with_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    await typing.key("a")
    assert typing.asked == []  # who knows whether anybody asks
    assert not (await typing.ask()).ahead_ms
    assert typing.asked == ["a"]
    await typing.key("b")
    assert typing.asked == ["a", "ab"]
    answer = await typing.ask()
    assert typing.asked == ["a", "ab"]
    assert [offer.edit.text for offer in answer.offers] == ["zzz\n"]
    assert not answer.cached
    assert answer.engine_ms == 7.0
    assert answer.ahead_ms > 0
    assert "by the model, 7.00 ms in the engine" in answer.words
    assert "ms before" in answer.words
    again = await typing.ask()
    assert again.cached
    assert "made before" in again.words
    # Along the suggestion nothing is asked, and what was made ahead is no other for who wants one.
    assert (await typing.typed("z")).cached
    assert typing.asked == ["a", "ab"]
    await typing.key("c")
    await typing.ask(invoked=True)
    assert typing.asked == ["a", "ab", "abzc", "abzc"]
    await typing.session.close()


@pytest.mark.asyncio
async def test_who_cancels_a_request_after_a_key_keeps_what_was_begun_with_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    await typing.typed("a")
    typing.free.clear()
    request = await typing.waiting("b")
    typing.press("c")
    request.cancel()  # the next message
    await asyncio.sleep(0.05)  # editors ask later
    assert (typing.asked, typing.ended) == (["a", "ab", "abc"], ["ab"])
    typing.free.set()
    assert (await typing.ask()).offers
    assert typing.asked == ["a", "ab", "abc"]
    await typing.session.close()


@pytest.mark.asyncio
async def test_nothing_is_begun_ahead_that_will_not_be_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    await typing.typed("a")
    await typing.key("b")  # begun, and not asked for: the next one is not
    await typing.key("c")
    await typing.key("d")
    assert typing.asked == ["a", "ab"]
    await typing.ask()
    await typing.key("e")
    assert typing.asked == ["a", "ab", "abcd", "abcde"]
    await typing.ask()
    # The editor closed a bracket: the cursor is not where the change ended.
    await typing.key("()")
    await typing.ask(n_back=1)
    await typing.key("f")
    assert typing.asked[4:] == ["abcde()", "abcde("]
    # Where nothing is welcome, paused, unknown, or nobody answers.
    await typing.ask()
    n = len(typing.asked)
    typing.be("restarting")
    await typing.key("g")
    typing.be("ready")
    await typing.ask()
    assert len(typing.asked) == n + 1
    other = typing.document
    typing.document = Document("file:///b.py", "python", 1, "x\n")
    typing.document.edited = DocumentPlace(1, 0)
    await typing.key("y")
    typing.document = other
    assert len(typing.asked) == n + 1
    await typing.session.close()
    several: list[dict[str, Any]] = [{"enabled": False}, {"disabled_languages": ["python"]}]
    for limits in several:
        typing = Typing(monkeypatch, **limits)
        for key in "abc":
            await typing.typed(key)
        assert typing.asked == []
        await typing.session.close()


@pytest.mark.asyncio
async def test_who_took_a_suggestion_finds_the_one_after_the_next_made_while_that_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    first = await typing.typed("a")
    await moments()
    assert typing.asked == ["a"]  # who knows whether it is taken
    await typing.take(first)
    second = await typing.ask()
    await moments()
    assert typing.asked == ["a", "", ""]  # after the first, and after the second
    # Typing along leads there, too.
    typing.free.clear()
    await typing.take(second)
    third = await typing.ask()
    assert third.cached
    await moments()
    assert typing.asked == ["a", "", "", ""]
    for key in "zz":
        assert (await typing.typed(key)).cached
    assert len(typing.asked) == 4
    assert not typing.ended
    # Another text does not, and so much for taking one after the other.
    await typing.key("c")
    assert typing.ended == [""]
    typing.free.set()
    fourth = await typing.ask()
    assert fourth.offers
    await moments()
    assert typing.asked[4:] == ["zzc"]
    await typing.session.close()


@pytest.mark.asyncio
async def test_nothing_is_asked_for_while_one_reads_without_reading_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch, prefetch=False)
    await typing.take(await typing.typed("a"))
    assert (await typing.ask()).offers
    await moments()
    assert typing.asked == ["a", ""]
    await typing.session.close()


@pytest.mark.asyncio
async def test_where_suggestions_are_passed_over_one_in_eight_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    for n in range(MIN_SHOWN):
        for offer in (await typing.typed("ab"[n % 2])).offers:
            typing.session.shown(offer.id)
    assert len(typing.asked) == MIN_SHOWN
    answers = [await typing.typed("ab"[n % 2]) for n in range(3 * TRIAL_EVERY)]
    assert len(typing.asked) == MIN_SHOWN + 3
    assert sum(bool(answer.offers) for answer in answers) == 3
    await typing.session.close()


@pytest.mark.asyncio
async def test_one_that_is_made_all_the_same_is_shown_as_long_as_it_is_typed_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    for _ in range(MIN_SHOWN):
        typing.session._offers._habits.shown("python", PlaceKind.BELOW)  # pyright: ignore[reportPrivateUsage]
    typing.insert("a")
    typing.finished = ["\nzzz"]
    answers = [await typing.ask() for _ in range(TRIAL_EVERY)]
    assert [len(answer.offers) for answer in answers] == [*[0] * (TRIAL_EVERY - 1), 1]
    for key in "\nz":
        typing.insert(key)
        assert (await typing.ask()).offers
    assert typing.asked == ["a"]
    await typing.session.close()


@pytest.mark.parametrize(
    ("change", "is_key"),
    [
        (Change("a", DocumentPlace(1, 2), DocumentPlace(1, 2)), True),
        (Change("𝒳", DocumentPlace(1, 2), DocumentPlace(1, 2)), True),
        (Change("\n    ", DocumentPlace(1, 2), DocumentPlace(1, 2)), True),
        (Change("\r\n\t", DocumentPlace(1, 2), DocumentPlace(1, 2)), True),
        (Change("()", DocumentPlace(1, 2), DocumentPlace(1, 2)), True),
        (Change("''", DocumentPlace(1, 2), DocumentPlace(1, 2)), True),
        (Change("\n    \n", DocumentPlace(1, 2), DocumentPlace(1, 2)), True),
        (Change("ab", DocumentPlace(1, 2), DocumentPlace(1, 2)), False),
        (Change("(]", DocumentPlace(1, 2), DocumentPlace(1, 2)), False),
        (Change("()", DocumentPlace(1, 1), DocumentPlace(1, 2)), False),
        (Change("    ", DocumentPlace(1, 2), DocumentPlace(1, 2)), False),
        (Change("a", DocumentPlace(1, 1), DocumentPlace(1, 2)), False),
        (Change("", DocumentPlace(1, 1), DocumentPlace(1, 2)), False),
        (Change("", DocumentPlace(1, 2), DocumentPlace(1, 2)), False),
        (Change("a"), False),
    ],
)
def test_a_key_brings_a_character_or_a_line_end(change: Change, is_key: bool) -> None:
    assert change.is_key == is_key


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (("(", 2), (")", 3), "()"),
        (("(", 2), (")", 2), ""),
        (("(", 2), ("]", 3), ""),
        (("(", 2), ("a", 9), ""),
        (("a", 2), ("b", 3), ""),
    ],
)
def test_a_key_may_be_closed_with_a_change_of_its_own(
    first: tuple[str, int], second: tuple[str, int], text: str
) -> None:
    changes = [
        Change(text, DocumentPlace(1, at), DocumentPlace(1, at)) for text, at in (first, second)
    ]
    key = as_one(changes)
    assert (key.text if key is not None else "") == text
    assert as_one(changes[:1]) is changes[0]
    assert as_one([]) is None


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("a", (1, 3)),
        ("()", (1, 3)),
        ("ab", (1, 4)),
        ("\n    ", (2, 4)),
        ("\n    \n", (2, 4)),
        ("\r\n    \r\n  ", (2, 4)),
        ("\n\n    ", (3, 4)),
        ("\n\n", (3, 0)),
    ],
)
def test_the_cursor_is_before_what_an_editor_closes_with_a_key(
    text: str, cursor: tuple[int, int]
) -> None:
    document = Document("file:///a.py", "python", 1, "x\ny(\n")
    change = Change(text, DocumentPlace(1, 2), DocumentPlace(1, 2))
    document.apply([change], "utf-32")
    assert change.cursor(document.edited) == DocumentPlace(*cursor)


@pytest.mark.parametrize(
    ("start", "end", "is_deletion"),
    [
        ((1, 8), (1, 9), True),
        ((1, 2), (1, 6), True),  # some of what it takes is no indentation
        ((0, 3), (1, 0), True),
        ((0, 0), (1, 0), True),
        ((1, 0), (1, 4), False),
        ((1, 3), (1, 4), False),
        ((1, 4), (1, 4), False),
    ],
)
def test_an_editor_that_indents_anew_has_deleted_nothing(
    start: tuple[int, int], end: tuple[int, int], is_deletion: bool
) -> None:
    document = Document("file:///a.py", "python", 1, "if x:\n    return\n")
    document.apply([Change("", DocumentPlace(*start), DocumentPlace(*end))], "utf-32")
    at = document.snapshot(document.edited, "utf-32", 1000, 1000)
    assert at.after_deletion == is_deletion
