"""Settings of the language server: changed while it runs, restricted by workspaces, asked for."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import CODE, CURSOR, PATIENT, Home, Spawn, texts, until
from tests.rpc import LspClient, folder_of

URI = "file:///project/a.py"
ASKED = {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}


def test_settings_change_while_the_editor_runs(home: Home, scripted: LspClient) -> None:
    config = home.path / "config" / "codespec" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    scripted.open(URI, "x")
    scripted.open("file:///project/a.md", "x", language="markdown")

    def n_items() -> tuple[int, int]:
        uris = (URI, "file:///project/a.md")
        a, b = (len(scripted.complete(uri, 0, 1)) for uri in uris)
        return a, b

    assert n_items() == (1, 1)
    config.write_text('[completion]\ndisabled_languages = ["markdown"]\n')
    assert n_items() == (1, 0)
    scripted.wait_for_status("Inactive", "paused: switched off for markdown in the settings")
    config.write_text('[completion]\ndisabled_language = ["python"]\n')
    assert n_items() == (1, 0)  # as before
    error = scripted.wait_for_status("Error", "completion.disabled_language")
    assert 'Did you mean "completion.disabled_languages"?' in error["message"]
    # The editor's own settings win.
    config.unlink()
    pushed: dict[str, dict[str, Any]] = {
        "codespec": {"server": {"completion": {"disabled_languages": ["python"]}}}
    }
    scripted.notify("workspace/didChangeConfiguration", {"settings": pushed})
    assert n_items() == (0, 1)
    pushed["codespec"]["server"] = {"completion": {"enabled": False}}
    scripted.notify("workspace/didChangeConfiguration", {"settings": pushed})
    assert n_items() == (0, 0)
    pushed["codespec"]["server"] = {"completion": {"enabled": None}}
    scripted.notify("workspace/didChangeConfiguration", {"settings": pushed})
    assert n_items() == (1, 1)


@pytest.mark.parametrize(
    "nothing", [{}, None, {"codespec": {}}, {"codespec": {"server": None}}, {"codespec": None}]
)
def test_settings_that_are_taken_back_are_gone(scripted: LspClient, nothing: object) -> None:
    """By an editor that cannot be asked."""
    pushed = {"codespec": {"server": {"completion": {"enabled": False}}}}
    scripted.open(URI, "x")
    for settings, n_items in ((pushed, 0), (nothing, 1), (pushed, 0), (nothing, 1)):
        scripted.notify("workspace/didChangeConfiguration", {"settings": settings})
        assert len(scripted.complete(URI, 0, 1)) == n_items


def test_the_status_follows_the_settings_before_anything_is_asked(scripted: LspClient) -> None:
    def push(completion: object) -> None:
        settings = {"codespec": {"server": {"completion": completion}}}
        scripted.notify("workspace/didChangeConfiguration", {"settings": settings})

    push({"enabled": False})
    scripted.wait_for_status("Inactive", "paused: switched off in the settings")
    push({"enabled": True})
    scripted.wait_for_status("Normal", "ready")
    scripted.open(URI, "x")
    scripted.notify("textDocument/didFocus", {"textDocument": {"uri": URI}})
    push({"disabled_languages": ["python"]})
    scripted.wait_for_status("Inactive", "paused: switched off for python in the settings")
    push({"disabled_languages": ["go"]})
    scripted.wait_for_status("Normal", "ready")


def test_counting_and_models_change_while_the_editor_runs(home: Home, scripted: LspClient) -> None:
    from codespec.usage.statistics import summary

    def push(settings: object) -> None:
        params = {"settings": {"codespec": {"server": settings}}}
        scripted.notify("workspace/didChangeConfiguration", params)

    def show(text: str, version: int) -> None:
        scripted.change(URI, version, {"text": text})
        (item,) = scripted.complete(URI, 0, len(text))
        scripted.notify("textDocument/didShowCompletion", {"item": item})

    scripted.open(URI, "")
    show("a", 2)
    push({"stats": {"enabled": False}})
    show("b", 3)
    push({"stats": {"enabled": None}})
    show("c", 4)
    push({"model": {"target": str(home.path / "missing.gguf"), "draft": ""}})
    scripted.wait_for_status("Error", "missing.gguf")
    assert scripted.complete(URI, 0, 1) == []
    push({"model": None})
    # Of a section that is none, nothing is taken.
    scripted.wait_for_status("Error", "model must be a table")
    push({})
    scripted.wait_for_status("Normal", "ready: scripted")
    assert len(scripted.complete(URI, 0, 1)) == 1
    assert scripted.close() == 0
    assert summary()[0].n_shown == 2


def test_a_workspace_can_only_restrict(home: Home, scripted: LspClient) -> None:
    file = home.workspace / ".codespec.toml"
    python, sql = ((home.workspace / name).as_uri() for name in ("a.py", "b.sql"))
    scripted.open(python, "x")
    scripted.open(sql, "x", language="sql")
    for content, n_python, n_sql, words in (
        ('exclude = ["*.sql", "!*.py"]\n', 1, 0, "excluded by .codespec.toml: *.sql"),
        ('disabled_languages = ["python"]\n', 0, 1, "switched off for python in .codespec.toml"),
        ("enabled = false\n", 0, 0, "switched off in .codespec.toml"),
        ('exclud = ["*.sql"]\n', 0, 0, 'unknown key "exclud", did you mean "exclude"?'),
        ("enabled = true\n[model]\ntarget = 'x'\n", 0, 0, 'unknown key "model"'),
    ):
        file.write_text(content)
        assert len(scripted.complete(python, 0, 1)) == n_python
        assert len(scripted.complete(sql, 0, 1)) == n_sql
        scripted.wait_for_status("Inactive", words)
    file.unlink()
    assert len(scripted.complete(python, 0, 1)) == 1


def test_a_file_of_another_system_is_in_no_workspace(home: Home, scripted: LspClient) -> None:
    (home.workspace / ".codespec.toml").write_text("enabled = false\n")
    for uri, n_items in (
        ((home.workspace / "a.py").as_uri(), 0),
        ("untitled:1", 0),
        ("file:///C:/Users/x/a.py", 1),
        ("file:///c%3A/Users/x/a.py", 1),
        ("file://server/share/a.py", 1),
        ("file:///elsewhere/a.py", 1),
    ):
        scripted.open(uri, "x")
        assert len(scripted.complete(uri, 0, 1)) == n_items, uri


def test_files_that_the_settings_exclude(home: Home, spawn: Spawn) -> None:
    client = spawn()
    options = {**PATIENT, "index": {"enabled": False, "exclude": ["gen/", "/top.py"]}}
    client.initialize(home.workspace, options=options)
    for name in ("gen/a.py", "top.py"):
        uri = (home.workspace / name).as_uri()
        client.open(uri, CODE)
        assert client.complete(uri, *CURSOR) == []
        client.wait_for_status("Inactive", "paused: file excluded by the settings")
    uri = (home.workspace / "sub" / "top.py").as_uri()
    client.open(uri, CODE)
    assert client.complete(uri, *CURSOR)
    assert client.close() == 0


def watchers(client: LspClient, *folders: Path) -> dict[Path, int]:
    """Process ids of the server's children that watch these folders."""
    found: dict[Path, int] = {}
    for child in psutil.Process(client.process.pid).children():
        with contextlib.suppress(psutil.Error):  # it ends
            arguments = child.cmdline()
            found |= {folder: child.pid for folder in folders if str(folder) in arguments}
    return found


def test_a_folder_that_comes_while_indexing_is_switched_off_is_not_watched(
    home: Home, spawn: Spawn
) -> None:
    folder, later = home.workspace, home.path / "later"
    later.mkdir()
    client = spawn()
    client.initialize(folders=[folder])
    until(lambda: watchers(client, folder, later).keys() == {folder})
    off = {"index": {"enabled": False}}
    client.notify("workspace/didChangeConfiguration", {"settings": {"codespec": {"server": off}}})
    event = {"added": [folder_of(later)], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    until(lambda: folder not in watchers(client, folder, later))
    assert watchers(client, folder, later) == {}
    assert client.close() == 0


def test_a_folder_that_comes_back_at_once_is_watched(home: Home, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(folders=[home.workspace])
    until(lambda: bool(watchers(client, home.workspace)))
    first = watchers(client, home.workspace)[home.workspace]
    folder = [folder_of(home.workspace)]
    for event in ({"added": [], "removed": folder}, {"added": folder, "removed": []}):
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    until(lambda: watchers(client, home.workspace).get(home.workspace, first) != first)
    assert client.close() == 0


def test_the_editor_is_asked_for_its_settings(home: Home, spawn: Spawn) -> None:
    client = spawn()
    client.answers["workspace/configuration"] = [{"completion": {"max_token": 3}}]
    client.answers["client/registerCapability"] = None
    client.initialize(home.workspace, options=PATIENT, workspace=ASKED)
    client.wait_for_status("Error", "completion.max_token")
    client.answers["workspace/configuration"] = [{"completion": {"max_tokens": 8}}]
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.wait_for_status("Normal", "ready")
    client.open(URI, CODE)
    text, *_ = texts(client.complete(URI, *CURSOR))
    assert text
    assert "\n" not in text, "eight tokens are a line"
    assert client.close() == 0


# --- progress ---------------------------------------------------------------------------------
