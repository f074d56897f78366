"""Suggestions that users can ask to be fewer, shorter, quieter, over the language server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codespec.usage.statistics import Stats
from tests.e2e.conftest import PATIENT, Home, Spawn, daemon_of, texts
from tests.rpc import LspClient, insert

URI = "file:///project/a.py"
Editor = Callable[..., LspClient]


@pytest.fixture
def editor(home: Home, spawn: Spawn) -> Iterator[Editor]:
    """Starts an editor with these settings of `completion`, on a scripted daemon."""

    def start(restraint: object = None, folder: Path | None = None, **asked: Any) -> LspClient:
        client = spawn()
        options: dict[str, object] = {**PATIENT, "completion": {**PATIENT["completion"], **asked}}
        if restraint is not None:
            options["restraint"] = restraint
        client.initialize(folder or home.workspace, options=options)
        client.notify("$/setTrace", {"value": "verbose"})
        client.wait_for_status("Normal", "ready")
        return client

    with daemon_of(home, "ok"):
        yield start


def reasons(client: LspClient) -> list[str]:
    traces = [m for m in client.notifications if m["method"] == "$/logTrace"]
    return [m["params"]["message"] for m in traces]


def test_manual_shows_what_is_asked_for_alone(editor: Editor) -> None:
    client = editor(trigger="manual")
    client.open(URI, "x = ")
    assert client.complete(URI, 0, 4, invoked=False) == []
    assert any("completion.trigger is manual" in why for why in reasons(client))
    (item,) = client.complete(URI, 0, 4, invoked=True)
    client.change(URI, 2, insert(0, 4, item["insertText"][0]))
    # What was asked for stays while it is typed along.
    assert texts(client.complete(URI, 0, 5, invoked=False)) == [item["insertText"][1:]]
    client.change(URI, 3, insert(0, 5, "z"))
    assert client.complete(URI, 0, 6, invoked=False) == []
    # Nothing is generated before it is asked for.
    assert sum(why.startswith("generation") for why in reasons(client)) == 1


def test_subtle_says_that_one_is_ready_and_shows_it_when_asked(editor: Editor) -> None:
    client = editor(trigger="subtle")
    client.open(URI, "x = ")
    assert client.complete(URI, 0, 4, invoked=False) == []
    said = client.wait_for_status("Normal", "a suggestion is ready")
    assert said["suggestion"] is True
    (item,) = client.complete(URI, 0, 4, invoked=True)
    client.notify("textDocument/didShowCompletion", {"item": item})
    assert "suggestion" not in client.wait_for_status("Normal", "ready: ")
    assert sum(why.startswith("generation") for why in reasons(client)) == 1, "made once"
    client.change(URI, 2, insert(0, 4, item["insertText"][0]))
    assert client.complete(URI, 0, 5, invoked=False) == []  # until the next edit
    client.wait_for_status("Normal", "a suggestion is ready")
    client.change(URI, 3, insert(0, 5, "z"))
    assert "suggestion" not in client.wait_for_status("Normal", "ready: ")
    assert client.close() == 0
    assert Stats().habits() == {}  # of what nobody asked for nothing was shown


def test_subtle_what_is_drawn_stays_while_parts_of_it_are_accepted(editor: Editor) -> None:
    client = editor(trigger="subtle")
    client.open(URI, "lines")
    assert client.complete(URI, 0, 5, invoked=False) == []
    (item,) = client.complete(URI, 0, 5, invoked=True)
    assert item["insertText"] == "one\ntwo words\nthree"
    for version, at, part, cursor, left in (
        (2, (0, 5), "one\n", (1, 0), "two words\nthree"),
        (3, (1, 0), "two ", (1, 4), "words\nthree"),
    ):
        client.change(URI, version, insert(*at, part))
        params = {"item": item, "acceptedLength": len(part)}
        client.notify("textDocument/didPartiallyAcceptCompletion", params)
        (item,) = client.complete(URI, *cursor, invoked=False)
        assert item["insertText"] == left
    client.change(URI, 4, insert(1, 4, "w"))  # typed along, it is an edit all the same
    assert client.complete(URI, 1, 5, invoked=False) == []
    client.wait_for_status("Normal", "a suggestion is ready")
    (item,) = client.complete(URI, 1, 5, invoked=True)
    rest = item["insertText"]
    client.change(URI, 5, insert(1, 5, rest))
    params = {"item": item, "acceptedLength": len(rest)}
    client.notify("textDocument/didPartiallyAcceptCompletion", params)
    assert client.complete(URI, 2, 5, invoked=False) == []  # of the next one a mark is enough


def test_asking_again_gives_more_to_choose_from(editor: Editor) -> None:
    client = editor(trigger="subtle")
    client.open(URI, "choose")
    assert client.complete(URI, 0, 6, invoked=False) == []
    assert texts(client.complete(URI, 0, 6, invoked=True)) == ["a"]
    assert texts(client.complete(URI, 0, 6, invoked=True)) == ["a", "b", "c"]


@pytest.mark.parametrize(("lines", "is_one"), [("auto", "False"), ("single", "True")])
def test_suggestions_may_be_one_line(editor: Editor, lines: str, is_one: str) -> None:
    client = editor(lines=lines)
    client.open(URI, "is one line")
    assert texts(client.complete(URI, 0, 11, invoked=False)) == [is_one]
    assert texts(client.complete(URI, 0, 11, invoked=True)) == [is_one]


def test_nothing_in_comments_and_strings_unless_asked(editor: Editor) -> None:
    client = editor(in_comments=False, in_strings=False)
    client.open(URI, "# what\nx = 'what\ny = \n")
    for line, (column, setting) in enumerate([(6, "in_comments"), (9, "in_strings"), (4, "")]):
        found = client.complete(URI, line, column, invoked=False)
        assert bool(found) == (not setting)
        assert not setting or any(f"completion.{setting} is off" in why for why in reasons(client))
        assert client.complete(URI, line, column, invoked=True)


def test_the_model_waits_until_nothing_was_typed_for_a_while(editor: Editor) -> None:
    client = editor(idle_ms=60_000)
    client.open(URI, "x = ")
    for version, column in ((2, 4), (3, 5)):
        client.change(URI, version, insert(0, column, "a"))
        waiting = client.post_completion(URI, 0, column + 1, invoked=False)
    client.change(URI, 4, insert(0, 6, "a"))
    assert client.complete(URI, 0, 7, invoked=True)  # who asks waits for nothing
    assert client.reply(waiting)["result"] == {"items": []}
    assert sum(why.startswith("generation") for why in reasons(client)) == 1
    assert client.close() == 0
    client = editor(idle_ms=1)
    client.open(URI, "x = ")
    client.change(URI, 2, insert(0, 4, "a"))
    assert client.complete(URI, 0, 5, invoked=False)


def test_a_workspace_asks_for_less_never_for_more(editor: Editor, home: Home) -> None:
    (home.workspace / ".codespec.toml").write_text('trigger = "manual"\nlines = "auto"\n')
    quiet = (home.workspace / "a.py").as_uri()
    client = editor(lines="single")
    for uri, is_made in ((quiet, False), (URI, True)):
        client.open(uri, "is one line")
        assert bool(client.complete(uri, 0, 11, invoked=False)) == is_made
        assert texts(client.complete(uri, 0, 11, invoked=True)) == ["True"]
    (home.workspace / ".codespec.toml").write_text('trigger = "auto"\n')
    assert client.complete(quiet, 0, 11, invoked=False)


def test_an_editors_workspace_asks_for_less_never_for_more(editor: Editor) -> None:
    client = editor({"trigger": "manual", "lines": "auto"}, lines="single")
    client.open(URI, "is one line")
    assert client.complete(URI, 0, 11, invoked=False) == []
    assert texts(client.complete(URI, 0, 11, invoked=True)) == ["True"]
    assert client.close() == 0
    client = editor({"trigger": "auto"}, trigger="manual")
    client.open(URI, "x = ")
    assert client.complete(URI, 0, 4, invoked=False) == []


def test_a_wrong_restraint_is_an_error_that_names_it(home: Home, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(home.workspace, options={"restraint": {"max_tokens": 9}})
    assert "max_tokens" in client.wait_for_status("Error", "restraint")["message"]


BATTERY = """
import pathlib, psutil
from types import SimpleNamespace
state = pathlib.Path({file!r})
def battery():
    return SimpleNamespace(percent=50, power_plugged=state.read_text() == "in")
psutil.sensors_battery = battery
"""


@pytest.fixture
def battery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A battery that says what this file says, "in" for plugged in."""
    file = tmp_path / "plug"
    file.write_text("out")
    site = tmp_path / "battery-site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BATTERY.format(file=str(file)))
    monkeypatch.setenv("PYTHONPATH", str(site))
    return file


@pytest.mark.parametrize(
    ("plug", "power", "saves"),
    [("out", "auto", True), ("out", "full", False), ("in", "auto", False)],
)
def test_on_battery_nothing_is_read_ahead(
    home: Home, spawn: Spawn, battery: Path, plug: str, power: str, saves: bool
) -> None:
    battery.write_text(plug)
    with daemon_of(home, "ok"):
        client = spawn()
        client.initialize(home.workspace, options={**PATIENT, "daemon": {"power": power}})
        client.wait_for_status("Normal", "on battery" if saves else "ready")
        other, question = (home.workspace / "b.py").as_uri(), "what was read ahead"
        client.open("untitled:1", question)
        client.complete("untitled:1", 0, 1)
        client.open(other, "x\n" * 20)
        found: list[dict[str, Any]] = []
        for line in range(20):
            place = {"line": line, "character": 0}
            client.notify(
                "textDocument/didFocus", {"textDocument": {"uri": other}, "position": place}
            )
            time.sleep(0.05)  # any request would take the place of reading ahead
            found = client.complete("untitled:1", 0, len(question))
            if found:
                break
        assert bool(found) != saves
        assert client.close() == 0
