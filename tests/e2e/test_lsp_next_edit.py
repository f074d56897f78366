"""Next edits over the language server: the exchange with editors that know Copilot's server, and
with those that show edits everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codespec.usage.statistics import Stats
from tests.e2e.conftest import PATIENT, Home, Spawn, daemon_of
from tests.e2e.test_lsp_restraint import battery as battery
from tests.rpc import LspClient, accept, at, insert, span

CLIENTS = json.loads(Path(__file__).with_name("next_edit_clients.json").read_text("utf-8"))
TEXT = "x = 1\nold(1)\nx = 2\nold(2)\n"
Editor = Callable[..., LspClient]
UNHURRIED = PATIENT | {"completion": {"deadline_auto_ms": 60_000}}


@pytest.fixture
def uri(home: Home) -> str:
    file = home.workspace / "a.py"
    file.write_text(TEXT)
    return file.as_uri()


@pytest.fixture
def editor(home: Home, spawn: Spawn) -> Iterator[Editor]:
    """Starts an editor with these settings of `edits`, on a scripted daemon."""

    def start(everywhere: bool = False, restraint: object = None, **edits: Any) -> LspClient:
        client = spawn()
        options: dict[str, object] = {**UNHURRIED, "edits": edits}
        if restraint is not None:
            options["restraint"] = {"edits": restraint}
        client.initialize(home.workspace, options=options, experimental={"inlineEdits": everywhere})
        client.notify("$/setTrace", {"value": "messages"})
        client.wait_for_status("Normal", "ready")
        return client

    with daemon_of(home, "ok"):
        yield start


def ask(
    client: LspClient, uri: str, version: int, line: int = 0, method: str = "copilotInlineEdit"
) -> list[dict[str, Any]]:
    params = {"textDocument": {"uri": uri, "version": version}, "position": at(line, 0)}
    edits: list[dict[str, Any]] = client.request(f"textDocument/{method}", params)["edits"]
    return edits


def why(client: LspClient) -> str:
    traced = [m["params"]["message"] for m in client.notifications if m["method"] == "$/logTrace"]
    return str(next(message for message in reversed(traced) if "no next edit" in message))


def item_of(edit: dict[str, Any]) -> dict[str, Any]:
    return {"item": {"command": {"arguments": edit["command"]["arguments"]}}}


def make(client: LspClient, version: int, edit: dict[str, Any]) -> None:
    uri = edit["textDocument"]["uri"]
    client.change(uri, version, {"range": edit["range"], "text": edit["text"]})


@pytest.mark.parametrize("name", CLIENTS)
def test_clients_of_copilots_server_are_served(editor: Editor, uri: str, name: str) -> None:
    """Each reads the fields that its source reads, and does what it does with them."""
    said = CLIENTS[name]
    client = editor()
    client.open(uri, TEXT)
    params = json.loads(json.dumps(said["request"]["params"]).replace("URI", uri))
    answer = client.request(said["request"]["method"], params)
    (edit,) = answer["edits"]
    for field in said["reads"]:
        value: Any = edit
        for key in field.split("."):
            value = value[key]
        assert value is not None, field
    assert edit["text"] == "new(1)"
    assert edit["range"] == span(1, 0, 6)
    assert edit["textDocument"] == {"uri": uri, "version": 1}
    if said["shows"]:
        client.notify("textDocument/didShowInlineEdit", {"item": {"command": edit["command"]}})
    make(client, 2, edit)
    if said["tells"]:
        accept(client, edit)
    (following,) = ask(client, uri, 2)
    assert (following["text"], following["number"], following["count"]) == ("new(2)", 2, 2)
    assert client.close() == 0
    (total, of_kind) = Stats().next_edits()
    assert (total.n_shown, total.n_accepted) == (1, 1)
    assert of_kind.kind == "scripted"


def test_an_edit_that_was_taken_back_does_not_count_and_is_dismissed(
    editor: Editor, uri: str
) -> None:
    client = editor()
    client.open(uri, TEXT)
    (edit,) = ask(client, uri, 1)
    make(client, 2, edit)
    accept(client, edit)
    (following,) = ask(client, uri, 2)
    assert (following["text"], following["number"], following["count"]) == ("new(2)", 2, 2)
    client.change(uri, 3, {"text": TEXT})
    (edit,) = ask(client, uri, 3)
    assert (edit["text"], edit["number"], edit["count"]) == ("new(2)", 1, 1)
    make(client, 4, edit)
    accept(client, edit)
    client.change(uri, 5, {"text": TEXT})
    assert ask(client, uri, 5) == []


def test_an_acceptance_counts_once_however_often_it_is_told(editor: Editor, uri: str) -> None:
    client = editor()
    text = "".join(f"x = {n}\nold({n})\n" for n in range(4))
    client.open(uri, text)
    made: list[dict[str, Any]] = []
    for version in (1, 2, 3):
        (edit,) = ask(client, uri, version)
        assert (edit["text"], edit["number"], edit["count"]) == (f"new({version - 1})", version, 4)
        make(client, version + 1, edit)
        made.append(edit)
        for told in made:
            accept(client, told)
            client.notify("textDocument/didDismissInlineEdit", item_of(told))
    (edit,) = ask(client, uri, 4)
    assert (edit["text"], edit["number"], edit["count"]) == ("new(3)", 4, 4)
    assert client.close() == 0
    assert Stats().next_edits()[0].n_accepted == 3


def test_numbers_of_a_position_may_have_a_point(editor: Editor, uri: str) -> None:
    client = editor()
    client.open(uri, TEXT)
    place = {"line": 0.0, "character": 1.0}
    params = {"textDocument": {"uri": uri, "version": 1.0}, "position": place}
    (edit,) = client.request("textDocument/copilotInlineEdit", params)["edits"]
    assert edit["text"] == "new(1)"


def test_the_version_is_checked(editor: Editor, uri: str) -> None:
    client = editor()
    client.open(uri, TEXT)
    client.change(uri, 2, insert(0, 0, "y"))
    assert ask(client, uri, 1) == []
    assert "version" in why(client)
    assert len(ask(client, uri, 2)) == 1
    assert ask(client, f"{uri}x", 1) == []


def test_columns_and_line_ends_are_the_editors(editor: Editor, uri: str) -> None:
    client = editor()
    client.open(uri, "x = '\U0001d11e'\r\n'\U0001d11e' + old(1)\r\n")
    (edit,) = ask(client, uri, 1)
    assert edit["range"] == span(1, 0, 13)
    assert edit["old"] == "'\U0001d11e' + old(1)"


def test_edits_elsewhere_go_to_editors_that_show_them(editor: Editor, home: Home, uri: str) -> None:
    other = home.workspace / "b.py"
    other.write_bytes(b"old(3)\r\nx\r\n")
    text = f"elsewhere {other}\n"
    plain = editor()
    plain.open(uri, text)
    assert ask(plain, uri, 1) == []
    client = editor(everywhere=True)
    client.open(uri, text)
    (edit,) = ask(client, uri, 1)
    assert edit["textDocument"] == {"uri": other.as_uri(), "version": None}
    assert (edit["range"], edit["text"]) == (span(0, 0, 6), "new(3)")
    # An open document is newer than its file: the edit's old text must stand there.
    client.open(other.as_uri(), "changed\n")
    assert ask(client, uri, 1) == []
    client.change(other.as_uri(), 2, {"text": "old(3)\ny\n"})
    (edit,) = ask(client, uri, 1)
    assert edit["textDocument"] == {"uri": other.as_uri(), "version": 2}


def test_all_places_are_listed(editor: Editor, uri: str) -> None:
    client = editor(everywhere=True)
    client.open(uri, TEXT)
    found = ask(client, uri, 1, method="nextEdits")
    assert [(e["range"]["start"]["line"], e["number"], e["count"]) for e in found] == [
        (1, 1, 2),
        (3, 2, 2),
    ]
    assert len(ask(client, uri, 1)) == 1


def test_what_was_dismissed_stays_so(editor: Editor, uri: str) -> None:
    client = editor()
    client.open(uri, TEXT)
    (first,) = ask(client, uri, 1)
    client.notify("textDocument/didDismissInlineEdit", item_of(first))
    (second,) = ask(client, uri, 1)
    assert second["text"] == "new(2)"
    # Shown, and the user goes on typing in the same line, then in another one.
    client.notify("textDocument/didShowInlineEdit", item_of(second))
    client.change(uri, 2, insert(0, 0, "y"))
    assert ask(client, uri, 2)[0]["text"] == "new(2)"
    client.change(uri, 3, insert(2, 0, "y"))
    assert ask(client, uri, 3) == []
    # Its old text is gone, so this is another edit.
    client.change(uri, 4, {"range": span(3, 0, 6), "text": "old(3)"})
    assert ask(client, uri, 4)[0]["text"] == "new(3)"


def test_what_was_not_shown_is_not_passed_over(editor: Editor, uri: str) -> None:
    client = editor()
    client.open(uri, TEXT)
    assert len(ask(client, uri, 1)) == 1
    client.change(uri, 2, insert(2, 0, "y"))
    assert ask(client, uri, 2)[0]["text"] == "new(1)"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"enabled": False}, "edits.enabled is off"),
        ({"restraint": {"enabled": False}}, "edits.enabled is off"),
    ],
)
def test_they_can_be_switched_off(
    editor: Editor, uri: str, options: dict[str, Any], words: str
) -> None:
    client = editor(**options)
    client.open(uri, TEXT)
    assert ask(client, uri, 1) == []
    assert words in why(client)


def test_a_workspace_may_restrict_them(editor: Editor, home: Home, uri: str) -> None:
    client = editor(everywhere=True, restraint={"where": "file"}, where="workspace")
    other = home.workspace / "b.py"
    other.write_text("old\n")
    client.open(uri, f"elsewhere {other}\n")
    assert ask(client, uri, 1) == []
    (home.workspace / ".codespec.toml").write_text("[edits]\nenabled = false\n")
    client.change(uri, 2, {"text": TEXT})
    assert ask(client, uri, 2) == []
    (home.workspace / ".codespec.toml").unlink()
    assert len(ask(client, uri, 2)) == 1
    (home.workspace / ".gitignore").write_text("a.py\n")
    (home.workspace / ".git").mkdir()
    assert ask(client, uri, 2) == []
    assert ".gitignore" in why(client)


def test_untitled_documents_and_cells_get_none(editor: Editor) -> None:
    client = editor()
    client.open("untitled:Untitled-1", TEXT)
    assert ask(client, "untitled:Untitled-1", 1) == []
    assert "no file" in why(client)
    cell = "vscode-notebook-cell:/w/a.ipynb#1"
    client.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": "file:///w/a.ipynb",
                "notebookType": "jupyter-notebook",
                "version": 1,
                "cells": [{"kind": 2, "document": cell}],
            },
            "cellTextDocuments": [
                {"uri": cell, "languageId": "python", "version": 1, "text": TEXT}
            ],
        },
    )
    assert ask(client, cell, 1) == []
    assert "no file" in why(client)


@pytest.mark.parametrize(
    "params", [{}, {"textDocument": 3, "position": at(0, 0)}, {"textDocument": {"uri": "x"}}]
)
def test_a_wrong_question_is_an_error(editor: Editor, params: object) -> None:
    client = editor()
    for method in ("copilotInlineEdit", "nextEdits"):
        reply = client.reply(client.post(f"textDocument/{method}", params))
        assert reply["error"]["code"] == -32602
    command = {"command": "codespec.nextEditAccepted", "arguments": [3]}
    assert client.reply(client.post("workspace/executeCommand", command))["error"]["code"] == -32602
    for notification in ("didShowInlineEdit", "didDismissInlineEdit"):
        client.notify(f"textDocument/{notification}", {"item": {"command": {"arguments": ["?"]}}})
    assert client.close() == 0


def test_a_model_is_asked_where_nothing_is_repeated(
    home: Home, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODESPEC_EDITS_MODEL", "fake:")
    uri = (home.workspace / "a.py").as_uri()
    with daemon_of(home, "ok"):
        client = spawn()
        client.initialize(home.workspace, options=PATIENT, experimental={"inlineEdits": True})
        client.wait_for_status("Normal", "ready")
        client.open(uri, "odd(1)\nold(2)\nodd(3)\n")
        # What is repeated goes first, and one place is asked of a model.
        assert [edit["text"] for edit in ask(client, uri, 1)] == ["new(2)"]
        client.change(uri, 2, {"text": "odd(1)\n\nodd(3)\n"})
        assert [edit["text"] for edit in ask(client, uri, 2, line=1)] == ["new(3)"]
        assert ask(client, uri, 2, line=1, method="nextEdits") == []
        assert client.close() == 0


@pytest.mark.parametrize("plug", ["in", "out"])
def test_on_battery_no_model_is_asked(
    home: Home, spawn: Spawn, monkeypatch: pytest.MonkeyPatch, battery: Path, plug: str
) -> None:
    battery.write_text(plug)
    monkeypatch.setenv("CODESPEC_EDITS_MODEL", "fake:")
    uri = (home.workspace / "a.py").as_uri()
    with daemon_of(home, "ok"):
        client = spawn()
        client.initialize(home.workspace, options=PATIENT)
        client.wait_for_status("Normal", "ready" if plug == "in" else "on battery")
        client.open(uri, "odd(1)\n")
        assert len(ask(client, uri, 1)) == (plug == "in")
        assert client.close() == 0


def test_without_a_next_edit_model_none_is_asked(editor: Editor, uri: str) -> None:
    client = editor(everywhere=True)
    client.open(uri, "odd(1)\n")
    assert ask(client, uri, 1) == []


def test_what_was_changed_is_proposed_elsewhere(home: Home, spawn: Spawn) -> None:
    text = (
        "class Store:\n    def __init__(self, folder):\n        self.folder = folder\n\n"
        "    def read(self, name):\n        return self.folder.joinpath(name).read_text()\n\n"
        "    def remove(self, name):\n        self.folder.joinpath(name).unlink()\n"
    )
    (home.workspace / "a.py").write_text(text)
    uri = (home.workspace / "a.py").as_uri()
    client = spawn()
    client.initialize(home.workspace, options={**UNHURRIED, "edits": {"eagerness": "high"}})
    client.wait_for_status("Normal", "ready")
    client.open(uri, text)
    client.change(uri, 2, {"range": span(2, 13, 19), "text": "root"})
    ask(client, uri, 2, 2)
    client.change(uri, 3, {"range": span(5, 20, 26), "text": "root"})
    (edit,) = ask(client, uri, 3, 5)
    assert edit["text"].strip() == "self.root.joinpath(name).unlink()"
    assert edit["range"]["start"] == at(8, 0)
    make(client, 4, edit)
    accept(client, edit)
    assert client.close() == 0
    assert Stats().next_edits()[0].n_accepted == 1
