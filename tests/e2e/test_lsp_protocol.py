"""The protocol that editors may count on, feature by feature: an engine that follows a script, real
bytes."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.e2e.conftest import PATIENT, Home, Spawn, daemon_of, texts
from tests.rpc import LspClient, accept, insert, span

URI = "file:///project/a.py"


def test_an_item_extends_the_selected_popup_entry(scripted: LspClient) -> None:
    scripted.open(URI, "x = pri\n")
    (item,) = scripted.complete(
        URI, 0, 7, invoked=False, selected={"range": span(0, 4, 7), "text": "print"}
    )
    assert item["insertText"] == "print[x = print|\n]"
    assert item["range"] == span(0, 4, 7)


def test_a_popup_entry_that_replaces_text_after_the_cursor(scripted: LspClient) -> None:
    scripted.open(URI, "x = prifoo\n")
    info = {"range": span(0, 4, 10), "text": "print"}
    (item,) = scripted.complete(URI, 0, 7, selected=info)
    assert item["insertText"] == "print[x = print|\n]"
    assert item["range"] == span(0, 4, 10)


def test_a_popup_entry_that_is_all_of_a_suggestion(scripted: LspClient) -> None:
    """VS Code takes its ghost text away if no suggestion begins with the entry."""
    scripted.open(URI, "f()")
    (item,) = scripted.complete(URI, 0, 2, invoked=False)
    assert item["insertText"] == "[f(|)]"
    for n, typed in enumerate(("[", "f")):
        scripted.change(URI, 2 + n, insert(0, 2 + n, typed))
        info = {"range": span(0, 2, 3 + n), "text": "[f(|)]"}
        (item,) = scripted.complete(URI, 0, 3 + n, invoked=False, selected=info)
        assert item["insertText"] == "[f(|)]"
        assert item["range"] == span(0, 2, 3 + n)
    # Another entry is extended as ever.
    info = {"range": span(0, 2, 4), "text": "[f"}
    (item,) = scripted.complete(URI, 0, 4, invoked=False, selected=info)
    assert item["insertText"] == "[f(|)]"


def test_a_popup_entry_elsewhere_does_not_count(scripted: LspClient) -> None:
    scripted.open(URI, "a\nx = pri\n")
    info = {"range": span(0, 0, 1), "text": "print"}
    (item,) = scripted.complete(URI, 1, 7, selected=info)
    assert item["insertText"] == "[a\nx = pri|\n]"
    assert item["range"] == span(1, 7, 7)


def test_typing_along_asks_no_model(scripted: LspClient) -> None:
    scripted.open(URI, "def f")
    (item,) = scripted.complete(URI, 0, 5, invoked=False)
    text = item["insertText"]
    assert text == "[def f|]"
    for n, character in enumerate("[def"):
        scripted.change(URI, 2 + n, insert(0, 5 + n, character))
        (item,) = scripted.complete(URI, 0, 6 + n, invoked=False)
        # Asked anew, the script would quote the changed text.
        assert item["insertText"] == text[n + 1 :]
    # Another character, and the model is asked.
    scripted.change(URI, 9, insert(0, 9, "!"))
    (item,) = scripted.complete(URI, 0, 10, invoked=False)
    assert item["insertText"] == "[def f[def!|]"
    # Taken back, what was there is there again.
    scripted.change(URI, 10, {"range": span(0, 9, 10), "text": ""})
    (item,) = scripted.complete(URI, 0, 9, invoked=False)
    assert item["insertText"] == text[4:]


def test_what_was_accepted_in_part_goes_on_with_the_rest(scripted: LspClient) -> None:
    scripted.open(URI, "lines")
    (item,) = scripted.complete(URI, 0, 5, invoked=False)
    assert item["insertText"] == "one\ntwo words\nthree"
    # By line, then by word: the text comes in pieces, and what is left stays. Asked anew, the
    # script would quote the changed text.
    for version, (line, column, part, left) in enumerate(
        [
            (0, 5, "one\n", "two words\nthree"),
            (1, 0, "two ", "words\nthree"),
            (1, 4, "words", "\nthree"),
        ],
        2,
    ):
        accepted = len("one\ntwo words\nthree") - len(left)
        params = {"item": item, "acceptedLength": accepted}
        scripted.notify("textDocument/didPartiallyAcceptCompletion", params)
        scripted.change(URI, version, insert(line, column, part))
        end = (line + 1, 0) if part.endswith("\n") else (line, column + len(part))
        (rest,) = scripted.complete(URI, *end, invoked=False)
        assert rest["insertText"] == left


def test_after_accepting_all_the_next_suggestion_is_on_its_way(scripted: LspClient) -> None:
    scripted.open(URI, "x")
    (item,) = scripted.complete(URI, 0, 1, invoked=False)
    scripted.notify("$/setTrace", {"value": "verbose"})
    accept(scripted, item)
    # The model is asked before the editor asks.
    scripted.wait_for(lambda m: "verbose" in m.get("params", {}))
    scripted.change(URI, 2, insert(0, 1, item["insertText"]))
    (item,) = scripted.complete(URI, 0, 5, invoked=False)
    assert item["insertText"] == "[x[x|]|]"
    trace = scripted.wait_for(lambda m: "suggestions," in m.get("params", {}).get("message", ""))
    assert "made before" in trace["params"]["message"]


def test_several_to_choose_from_are_for_who_asks(scripted: LspClient) -> None:
    scripted.open(URI, "choose")
    assert texts(scripted.complete(URI, 0, 6, invoked=False)) == ["a"]
    # What is shown stays first.
    assert texts(scripted.complete(URI, 0, 6, invoked=True)) == ["a", "b", "c"]
    assert texts(scripted.complete(URI, 0, 6, invoked=False)) == ["a"]
    pushed = {"codespec": {"server": {"completion": {"n_candidates": 2}}}}
    scripted.notify("workspace/didChangeConfiguration", {"settings": pushed})
    assert texts(scripted.complete(URI, 0, 6, invoked=True)) == ["a", "b"]


def test_nothing_is_suggested_in_the_way_unless_asked_for(scripted: LspClient) -> None:
    scripted.open(URI, "foo(bar)\n")
    assert scripted.complete(URI, 0, 5, invoked=False) == []
    assert len(scripted.complete(URI, 0, 5)) == 1
    assert len(scripted.complete(URI, 0, 7, invoked=False)) == 1
    scripted.change(URI, 2, {"range": span(0, 6, 7), "text": ""})
    assert scripted.complete(URI, 0, 6, invoked=False) == []


def test_a_trace_names_the_rule(scripted: LspClient) -> None:
    scripted.notify("$/setTrace", {"value": "messages"})
    scripted.open(URI, "foo(bar)\n")
    assert scripted.complete(URI, 0, 5, invoked=False) == []
    message = scripted.wait_for(lambda m: m["method"] == "$/logTrace")
    assert "/project/a.py:1: no suggestion: a word goes on" in message["params"]["message"]
    assert "foo" not in message["params"]["message"]


def test_a_verbose_trace_has_the_figures_of_each_generation(scripted: LspClient) -> None:
    def figures(key: str = "finish") -> dict[str, Any]:
        message = scripted.wait_for(lambda m: f'"{key}"' in m.get("params", {}).get("verbose", ""))
        assert "secret" not in str(message)
        return json.loads(message["params"]["verbose"])

    scripted.notify("$/setTrace", {"value": "verbose"})
    scripted.open(URI, "secret")
    assert len(scripted.complete(URI, 0, 6)) == 1
    found = figures()
    assert found["finish"] == "stop"
    assert {"ms", "n_tokens", "n_target_passes", "pass_ms", "by_source"} <= set(found["trace"])
    assert not [v for v in found["trace"].values() if isinstance(v, str)]
    made = figures("answer")["answer"]
    assert (made["n_offers"], made["is_kept"], made["ahead_ms"]) == (1, False, 0)
    assert len(scripted.complete(URI, 0, 6, invoked=False)) == 1
    assert figures("answer")["answer"] == {
        "n_offers": 1, "is_kept": True, "engine_ms": 0, "model_ms": 0, "ahead_ms": 0
    }  # fmt: skip
    # One that nobody wants any more is told of, too.
    other = "file:///project/b.py"
    scripted.open(other, "until cancelled")
    request = scripted.post_completion(other, 0, 15, invoked=False)
    scripted.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": other, "version": 2}, "contentChanges": [{"text": "secret"}]},
    )
    scripted.reply(request)
    assert figures()["finish"] == "cancelled"


def test_with_a_key_the_model_is_asked_before_the_editor_asks(scripted: LspClient) -> None:
    def traced() -> str:
        found = scripted.wait_for(lambda m: m.get("method") == "$/logTrace")["params"]
        return found["message"] + found.get("verbose", "")

    scripted.notify("$/setTrace", {"value": "verbose"})
    scripted.open(URI, "")
    scripted.change(URI, 2, insert(0, 0, "x"))
    assert len(scripted.complete(URI, 0, 1, invoked=False)) == 1
    assert '"finish":"stop"' in traced()
    assert "begun" not in traced()
    scripted.change(URI, 3, insert(0, 1, "y"))
    assert '"finish":"stop"' in traced()  # nobody asked for it
    assert len(scripted.complete(URI, 0, 2, invoked=False)) == 1
    assert re.search(r"by the model, begun [\d.]+ ms before", traced())
    # Where the editor closes what the key opens, the cursor is within.
    for version, at, text, cursor in (
        (4, (0, 2), "{}", (0, 3)), (5, (0, 3), "\n    \n", (1, 4)), (6, (1, 4), '""', (1, 5)),
    ):  # fmt: skip
        scripted.change(URI, version, insert(*at, text))
        assert '"finish":"stop"' in traced()
        assert len(scripted.complete(URI, *cursor, invoked=False)) == 1
        assert re.search(r"by the model, begun [\d.]+ ms before", traced())
    # It may close it with a change of its own,
    scripted.change(URI, 7, insert(1, 5, "("), insert(1, 6, ")"))
    assert '"finish":"stop"' in traced()
    assert len(scripted.complete(URI, 1, 6, invoked=False)) == 1
    assert re.search(r"by the model, begun [\d.]+ ms before", traced())
    # and tell of it a moment later.
    scripted.change(URI, 8, insert(1, 6, "{"))
    assert '"finish":"stop"' in traced()
    scripted.change(URI, 9, insert(1, 7, "}"))
    assert '"finish":"stop"' in traced()
    assert len(scripted.complete(URI, 1, 7, invoked=False)) == 1
    assert re.search(r"by the model, begun [\d.]+ ms before", traced())


def test_a_document_that_rules_exclude_is_a_pause_with_a_reason(
    home: Home, scripted: LspClient
) -> None:
    (home.workspace / ".gitignore").write_text("*.log\n")
    allowed, excluded = (home.workspace / name for name in ("a.py", "b.log"))
    for path in (allowed, excluded):
        scripted.open(path.as_uri(), "x")
    assert scripted.complete(excluded.as_uri(), 0, 1) == []
    status = scripted.wait_for_status("Inactive", "paused: file ignored by .gitignore: *.log")
    assert not status["busy"]
    scripted.notify("textDocument/didFocus", {"textDocument": {"uri": allowed.as_uri()}})
    scripted.wait_for_status("Normal", "ready")
    scripted.notify("textDocument/didFocus", {"textDocument": {"uri": excluded.as_uri()}})
    scripted.wait_for_status("Inactive", "paused")


def test_the_status_stays_with_the_document_at_hand(home: Home, scripted: LspClient) -> None:
    """Whatever becomes of another one, and as long as it is open."""
    (home.workspace / ".gitignore").write_text("*.log\n")
    allowed, excluded = ((home.workspace / name).as_uri() for name in ("a.py", "b.log"))

    def status() -> dict[str, Any]:
        """The last one there is, when everything said before is done."""
        scripted.complete("file:///unknown.py", 0, 0)
        said = [m["params"] for m in scripted.notifications if m["method"] == "didChangeStatus"]
        scripted.notifications.clear()
        return said[-1] if said else {}

    scripted.open(allowed, "until cancelled")
    scripted.open(excluded, "x")
    request = scripted.post_completion(allowed, 0, 15)
    scripted.notify("textDocument/didFocus", {"textDocument": {"uri": excluded}})
    assert status()["kind"] == "Inactive"
    scripted.notify("textDocument/didClose", {"textDocument": {"uri": allowed}})
    scripted.reply(request)
    assert status() == {}
    scripted.notify("textDocument/didClose", {"textDocument": {"uri": excluded}})
    assert status()["kind"] == "Normal"
    scripted.open(excluded, "x", language="text")  # as another language
    assert status()["kind"] == "Inactive"


def test_every_rule_holds_for_open_files_and_is_named(home: Home, scripted: LspClient) -> None:
    folder = home.workspace
    for name, line in ((".gitignore", "a.py"), (".ignore", "b.py"), (".codespecignore", "c.py")):
        (folder / name).write_text(f"{line}\n")
    for name, why in (
        ("a.py", "file ignored by .gitignore: a.py"),
        ("b.py", "file ignored by .ignore: b.py"),
        ("c.py", "file ignored by .codespecignore: c.py"),
        (".env", "a file that holds secrets by its name"),
        (".ssh/config", "in a folder that holds secrets: .ssh"),
        ("id_rsa", "a file that holds secrets by its name"),
    ):
        uri = (folder / name).as_uri()
        scripted.open(uri, "x")
        assert scripted.complete(uri, 0, 1, invoked=True) == []
        assert scripted.wait_for_status("Inactive", why)["message"] == f"paused: {why}"
    allowed = (folder / "d.py").as_uri()
    scripted.open(allowed, "x")
    assert len(scripted.complete(allowed, 0, 1)) == 1
    scripted.wait_for_status("Normal", "ready")


def test_secrets_are_so_by_their_name_wherever_they_are(home: Home, scripted: LspClient) -> None:
    names = {"a.py": 1, ".env": 0}
    places = ("scp://server/", f"untitled:{home.workspace.as_posix()}/", "fugitive:///a/.git//0/")
    for place in places:
        for name, n_items in names.items():
            scripted.open(place + name, "x")
            assert len(scripted.complete(place + name, 0, 1)) == n_items
            if not n_items:
                scripted.wait_for_status("Inactive", "a file that holds secrets by its name")
    # Rules of the workspace hold for what is no file as for what is one.
    (home.workspace / ".codespec.toml").write_text("enabled = false\n")
    assert scripted.complete("scp://server/a.py", 0, 1) == []


def test_a_link_is_what_it_leads_to_when_the_document_is_opened(
    home: Home, scripted: LspClient
) -> None:
    folder = home.workspace
    (folder / ".gitignore").write_text("private\n")
    link = folder / "link"
    for name, n_items in (("public", 1), ("private", 0), ("public", 1)):
        (folder / name).mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(folder / name, target_is_directory=True)
        uri = (link / "a.py").as_uri()
        scripted.open(uri, "x")
        assert len(scripted.complete(uri, 0, 1)) == n_items
        scripted.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_a_document_that_is_no_file_has_no_path(home: Home, scripted: LspClient) -> None:
    loop = home.workspace / "loop.py"
    loop.symlink_to(loop)
    for uri in ("file:///a%00b.py", "file://[/a.py", loop.as_uri()):
        scripted.open(uri, "x")
        assert texts(scripted.complete(uri, 0, 1)) == ["[x|]"]
        scripted.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        scripted.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})


def test_what_became_of_items_is_counted(home: Home, scripted: LspClient) -> None:
    from codespec.usage.statistics import summary

    scripted.open(URI, "x")
    (item,) = scripted.complete(URI, 0, 1)
    scripted.notify("textDocument/didShowCompletion", {"item": item})
    params = {"item": item, "acceptedLength": 2}
    scripted.notify("textDocument/didPartiallyAcceptCompletion", params)
    # Messages that make no sense are no harm.
    for method in ("didShowCompletion", "didPartiallyAcceptCompletion", "didFocus"):
        for junk in ({}, {"item": 1}, {"item": {"command": None}}, {"textDocument": None}):
            scripted.notify(f"textDocument/{method}", junk)
    assert len(scripted.complete(URI, 0, 1)) == 1
    assert scripted.close() == 0
    (everything, python) = summary()
    assert (everything.n_shown, everything.n_accepted_chars) == (1, 2)
    assert python.language == "python"


def test_cells_of_a_notebook_are_joined(home: Home, scripted: LspClient) -> None:
    notebook = (home.workspace / "a.ipynb").as_uri()
    cells = [f"vscode-notebook-cell:/a.ipynb#{n}" for n in range(4)]
    kinds = [
        (2, "python", "import os"),
        (1, "markdown", "# title"),
        (2, "python", "x"),
        (2, "python", "y\n"),
    ]
    scripted.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": notebook,
                "notebookType": "jupyter-notebook",
                "version": 1,
                "cells": [
                    {"kind": kind, "document": uri}
                    for uri, (kind, *_) in zip(cells, kinds, strict=True)
                ],
            },
            "cellTextDocuments": [
                {"uri": uri, "languageId": language, "version": 1, "text": text}
                for uri, (_, language, text) in zip(cells, kinds, strict=True)
            ],
        },
    )
    (item,) = scripted.complete(cells[2], 0, 1)
    assert item["insertText"] == "[import os\nx|\ny\n]"
    assert item["range"] == span(0, 1, 1)

    def change(**cells: Any) -> None:
        document = {"uri": notebook, "version": 2}
        scripted.notify(
            "notebookDocument/didChange", {"notebookDocument": document, "change": {"cells": cells}}
        )

    changed = {"document": {"uri": cells[2], "version": 2}, "changes": [insert(0, 0, "a")]}
    change(textContent=[changed])
    change(
        structure={
            "array": {"start": 0, "deleteCount": 1, "cells": []},
            "didClose": [{"uri": cells[0]}],
        }
    )
    (item,) = scripted.complete(cells[2], 0, 2)
    assert item["insertText"] == "[ax|\ny\n]"
    # Versions do not matter, as in other documents.
    whole = {"range": None, "text": "z"}
    change(textContent=[{"document": {"uri": cells[2]}, "changes": [whole, insert(0, 1, "b")]}])
    (item,) = scripted.complete(cells[2], 0, 2)
    assert item["insertText"] == "[zb|\ny\n]"
    # A rule for the notebook is one for its cells.
    (home.workspace / ".gitignore").write_text("*.ipynb\n")
    assert scripted.complete(cells[2], 0, 2) == []
    closed = [{"uri": uri} for uri in cells[1:]]
    params = {"notebookDocument": {"uri": notebook}, "cellTextDocuments": closed}
    scripted.notify("notebookDocument/didClose", params)
    assert scripted.complete(cells[2], 0, 2) == []
    # The engine has heard of the one that was asked about.
    (home.workspace / ".gitignore").unlink()
    scripted.open("untitled:1", "what was closed")
    (item,) = scripted.complete("untitled:1", 0, 15)
    assert item["insertText"] == str(home.workspace / "a.ipynb")


# --- settings ---------------------------------------------------------------------------------


def test_loading_and_indexing_are_shown_as_progress(home: Home, spawn: Spawn) -> None:
    (home.workspace / "a.py").write_text("x = 1\n" * 50)
    signal_file = home.path / "load now"
    with daemon_of(home, "wait", str(signal_file)):
        client = spawn()
        client.answers["window/workDoneProgress/create"] = None
        client.initialize(home.workspace, options=PATIENT, window={"workDoneProgress": True})
        client.wait_for_status("Normal", "loading the model, 40 %")
        begun = client.wait_for(lambda m: m["method"] == "$/progress")
        assert begun["params"]["value"]["title"] == "codespec: loading the model"
        report = client.wait_for(
            lambda m: m["method"] == "$/progress" and m["params"]["value"]["percentage"] == 40
        )
        assert report["params"]["token"] == begun["params"]["token"]
        signal_file.touch()
        client.wait_for_status("Normal", "ready")
        client.wait_for(
            lambda m: m["method"] == "$/progress" and m["params"]["value"]["kind"] == "end"
        )
        assert client.close() == 0


def test_a_model_that_failed_is_tried_again_for_an_editor_that_comes(
    home: Home, spawn: Spawn
) -> None:
    """A user restarts the server in an editor once the obstacle is gone."""
    mended = home.path / "mended"
    with daemon_of(home, "refuse", str(mended)):
        client = spawn()
        client.initialize(home.workspace, options=PATIENT)
        client.wait_for_status("Error", "no completions: no such model. Choose another one.")
        assert client.close() == 0
        mended.touch()
        client = spawn()
        client.initialize(home.workspace, options=PATIENT)
        client.wait_for_status("Normal", "ready")
        assert client.close() == 0


def test_a_suggestion_asked_for_while_the_model_loads_is_kept(home: Home, spawn: Spawn) -> None:
    go = home.path / "go"
    with daemon_of(home, "wait", str(go)):
        client = spawn()
        client.initialize(home.workspace, options=PATIENT)
        client.notify("$/setTrace", {"value": "messages"})
        client.open(URI, "lines")
        request = client.post_completion(URI, 0, 5)
        client.wait_for_status("Normal", "loading the model")
        go.touch()
        items = client.reply(request)["result"]["items"]
        assert texts(client.complete(URI, 0, 5)) == texts(items)
        client.wait_for(lambda m: "made before" in m.get("params", {}).get("message", ""))
        assert client.close() == 0
