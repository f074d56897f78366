"""The language server over stdio, as editors speak to it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from itertools import count

import pytest

from codespec.daemon import control
from codespec.index.reader import WorkspaceIndex
from codespec.requests import CompletionRequest
from codespec.usage.statistics import summary
from tests.e2e.conftest import (
    CODE,
    CURSOR,
    PATIENT,
    Home,
    Spawn,
    daemon_of,
    texts,
    until,
    wait_until_gone,
)
from tests.e2e.test_daemon import stopped
from tests.engines import strict_engine
from tests.rpc import LspClient

URI = "file:///project/a.py"
OTHER_URI = "file:///project/b.py"


def status_of(home: Home) -> tuple[int, int]:
    report = control.status(home.settings)
    assert report is not None
    return report.pid, report.worker_pid


# --- with the real model --------------------------------------------------------------------


def test_an_editor_gets_what_the_engine_says(home: Home, spawn: Spawn) -> None:
    local = strict_engine(home.settings)
    lines = CODE.split("\n")
    prefix = "\n".join([*lines[: CURSOR[0]], lines[CURSOR[0]][: CURSOR[1]]])
    expected = local.complete(
        CompletionRequest(prefix, CODE[len(prefix) :], path="/project/a.py", language_id="python")
    ).text
    local.close()
    assert expected

    client = spawn()
    capabilities = client.initialize(home.workspace, options=PATIENT)["capabilities"]
    assert capabilities["inlineCompletionProvider"] == {}
    assert capabilities["positionEncoding"] == "utf-16"
    client.open(URI, CODE)
    # At once: the daemon is not even started.
    item = client.complete(URI, *CURSOR)[0]
    place = {"line": CURSOR[0], "character": CURSOR[1]}
    command = item.pop("command")
    assert item == {"insertText": expected, "range": {"start": place, "end": place}}
    assert command["command"] in capabilities["executeCommandProvider"]["commands"]
    states = [n["params"] for n in client.notifications if n["method"] == "didChangeStatus"]
    *before, last = states
    assert all(s["busy"] for s in before)
    assert "starting" in before[0]["message"]
    assert all("loading" in s["message"] for s in before[1:])
    assert not last["busy"]
    assert "ready" in last["message"]

    # Typing on, in small edits, gives what the changed text gives.
    edit = {"start": place, "end": place}
    client.change(URI, 2, {"range": edit, "text": "p"}, {"range": edit, "text": ""})
    again = client.complete(URI, CURSOR[0], CURSOR[1] + 1)[0]
    with_p = spawn_text(home, prefix + "p", CODE[len(prefix) :])
    assert again["insertText"] == with_p
    assert client.close() == 0
    assert client.stderr == b""


def spawn_text(home: Home, prefix: str, suffix: str) -> str:
    local = strict_engine(home.settings)
    try:
        request = CompletionRequest(prefix, suffix, path="/project/a.py", language_id="python")
        return local.complete(request).text
    finally:
        local.close()


def test_two_editors_share_one_daemon_and_leave_it_running(home: Home, spawn: Spawn) -> None:
    found: list[list[str]] = []
    for client in [spawn(), spawn()]:
        client.initialize(home.workspace, options=PATIENT)
        client.open(URI, CODE)
        found.append(texts(client.complete(URI, *CURSOR)))
        assert client.close() == 0
    assert found[0]
    assert found[0] == found[1]
    assert len(home.daemon_pids()) == 1


def test_a_worker_killed_during_a_completion(home: Home, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(home.workspace, options=PATIENT)
    client.open(URI, CODE)
    expected = texts(client.complete(URI, *CURSOR))
    pid, worker_pid = status_of(home)
    with stopped(worker_pid):
        client.open(OTHER_URI, CODE)
        request = client.post_completion(OTHER_URI, *CURSOR)
        # The daemon has the request when it answers a question that came after it.
        until(lambda: n_requests(home) == 2)
        os.kill(worker_pid, signal.SIGKILL)
        assert client.reply(request)["result"] == {"items": []}
    client.wait_for_status("Warning", "SIGKILL")
    assert texts(client.complete(OTHER_URI, *CURSOR)) == expected
    assert status_of(home)[0] == pid
    assert client.close() == 0


def n_requests(home: Home) -> int:
    report = control.status(home.settings)
    return report.n_requests if report else 0


def test_a_killed_daemon_is_started_again(home: Home, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(home.workspace, options=PATIENT)
    client.open(URI, CODE)
    expected = texts(client.complete(URI, *CURSOR))
    pid, _ = status_of(home)
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)
    # What is known already needs no daemon.
    assert texts(client.complete(URI, *CURSOR)) == expected
    client.open(OTHER_URI, CODE)
    # A request that is sent before the server has noticed gets an empty answer, not an error.
    first = texts(client.complete(OTHER_URI, *CURSOR))
    assert first in ([], expected)
    assert first == expected or texts(client.complete(OTHER_URI, *CURSOR)) == expected
    assert status_of(home)[0] != pid
    assert client.close() == 0


def test_a_stopped_daemon_comes_back_when_it_is_needed(home: Home, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(home.workspace, options=PATIENT)
    client.open(URI, CODE)
    expected = texts(client.complete(URI, *CURSOR))
    assert control.stop(home.settings)
    client.wait_for_status("Inactive", "stopped")
    assert control.status(home.settings) is None
    client.open(OTHER_URI, CODE)
    assert texts(client.complete(OTHER_URI, *CURSOR)) == expected
    assert client.close() == 0


def test_the_prompt_of_the_place_that_the_user_looks_at_is_read_ahead(
    home: Home, spawn: Spawn
) -> None:
    text = "".join(f"def function_{i}(x):\n    return x + {i}\n\n\n" for i in range(80))
    client = spawn()
    client.initialize(home.workspace, options=PATIENT)
    client.notify("$/setTrace", {"value": "verbose"})
    client.open(URI, text)
    client.wait_for_status("Normal", "ready")
    tries = count()

    def is_read_ahead() -> bool:
        n = next(tries)
        line = 41 + 12 * n
        position = {"line": line, "character": 8}
        client.notify("textDocument/didFocus", {"textDocument": {"uri": URI}, "position": position})
        threading.Event().wait(0.1 * n)  # no promise says when, so wait ever longer
        client.complete(URI, line, 8)
        trace = client.wait_for(lambda m: '"trace"' in m.get("params", {}).get("verbose", ""))
        found = json.loads(trace["params"]["verbose"])["trace"]
        assert found["n_prompt_tokens"] > 200
        return found["n_prompt_cached"] > 0.9 * found["n_prompt_tokens"]

    until(is_read_ahead)
    assert client.close() == 0


def test_a_missing_model_is_an_error_status_and_empty_answers(home: Home, spawn: Spawn) -> None:
    client = spawn()
    missing = {"target": str(home.path / "missing.gguf"), "draft": ""}
    client.initialize(home.workspace, options={**PATIENT, "model": missing})
    client.open(URI, CODE)
    assert client.complete(URI, *CURSOR) == []
    client.wait_for_status("Error", "missing.gguf")
    assert client.close() == 0


def test_an_unknown_setting_is_an_error_status(home: Home, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(home.workspace, options={"completion": {"max_token": 5}})
    client.wait_for_status("Error", "max_token")
    client.open(URI, CODE)
    assert client.complete(URI, *CURSOR) == []
    assert client.close() == 0


def test_the_deadline_holds_while_the_model_loads(home: Home, spawn: Spawn) -> None:
    client = spawn()
    options = {**PATIENT, "completion": {"deadline_auto_ms": 1}}
    client.initialize(home.workspace, options=options)
    client.open(URI, CODE)
    client.wait_for_status("Normal", "starting")
    assert client.complete(URI, *CURSOR, invoked=False) == []
    client.wait_for_status("Normal", "loading")  # else the daemon may outlive the test
    assert client.close() == 0


def test_the_workspace_is_indexed_in_the_background(home: Home, spawn: Spawn) -> None:
    (home.workspace / "a.py").write_text("def in_the_workspace():\n    return 1\n" * 20)
    client = spawn()
    client.initialize(home.workspace, options={"index": {"enabled": True}})
    local = strict_engine(home.settings)
    token_hash = local.tokenizer.hash
    local.close()

    def is_indexed() -> bool:
        index = WorkspaceIndex.open(home.workspace, token_hash)
        return index is not None and index.n_tokens > 0

    until(is_indexed)
    assert client.close() == 0


# --- with a scripted engine -----------------------------------------------------------------


def test_a_superseded_request_is_answered_with_nothing(scripted: LspClient) -> None:
    scripted.open(URI, "until cancelled")
    old = scripted.post_completion(URI, 0, 15)
    scripted.change(URI, 2, {"text": "new"})
    new = scripted.post_completion(URI, 0, 3)
    assert scripted.reply(old)["result"] == {"items": []}
    (item,) = scripted.reply(new)["result"]["items"]
    assert item["insertText"] == "[new|]"


def test_a_cancelled_request_is_answered_with_the_error_of_the_protocol(
    scripted: LspClient,
) -> None:
    scripted.open(URI, "until cancelled")
    request = scripted.post_completion(URI, 0, 15)
    scripted.notify("$/cancelRequest", {"id": request})
    assert scripted.reply(request)["error"]["code"] == -32800
    scripted.change(URI, 2, {"text": "next"})
    (item,) = scripted.complete(URI, 0, 4)
    assert item["insertText"] == "[next|]"


def test_a_request_sees_the_document_as_it_was(scripted: LspClient) -> None:
    uris = [f"{URI}/{n}" for n in range(6)]
    for n, uri in enumerate(uris):
        scripted.open(uri, f"before {n}")
        # Known from now on, so that no change can end what is asked below.
        assert texts(scripted.complete(uri, 0, 6)) == [f"[before| {n}]"]
    requests: list[int] = []
    for n, uri in enumerate(uris):  # all are sent before any is answered
        requests.append(scripted.post_completion(uri, 0, 6, invoked=False))
        scripted.change(uri, 2, {"text": f"after {n}"})
        requests.append(scripted.post_completion(uri, 0, 5))
    for n in range(len(uris)):
        before, after = (scripted.reply(request)["result"] for request in requests[2 * n :][:2])
        # Nothing in the middle of a line unasked, but what is known already.
        assert texts(before["items"]) == [f"[before| {n}]"]
        assert texts(after["items"]) == [f"[after| {n}]"]


def test_line_ends_of_the_document_are_kept(scripted: LspClient) -> None:
    scripted.open(URI, "one\r\ntwo\r\nthree")
    (item,) = scripted.complete(URI, 1, 1)
    assert item["insertText"] == "[one\r\nt|wo\r\nthree]"
    assert item["range"]["start"] == item["range"]["end"] == {"line": 1, "character": 1}


@pytest.mark.parametrize(
    ("encodings", "chosen", "column"),
    [
        (["utf-8", "utf-16"], "utf-8", 5),
        (["utf-32"], "utf-32", 2),
        (["utf-16"], "utf-16", 3),
        (["utf-7"], "utf-16", 3),
    ],
)
def test_positions_are_in_the_units_agreed_on(
    scripted: LspClient, spawn: Spawn, encodings: list[str], chosen: str, column: int
) -> None:
    client = spawn()
    assert client.initialize(None, encodings, PATIENT)["capabilities"]["positionEncoding"] == chosen
    client.open(URI, "😀a\u2028b\x0c😀")
    (item,) = client.complete(URI, 0, column)
    assert item["insertText"] == "[😀a|\u2028b\x0c😀]"
    assert item["range"]["start"] == {"line": 0, "character": column}
    edit = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": column}}
    client.change(URI, 2, {"range": edit, "text": "é"})
    (item,) = client.complete(URI, 9, 9)
    assert item["insertText"] == "[é\u2028b\x0c😀|]"
    assert client.close() == 0


def test_documents_that_are_not_open_get_nothing(scripted: LspClient) -> None:
    assert scripted.complete("file:///never/opened.py", 0, 0) == []
    scripted.open(URI, "x")
    assert len(scripted.complete(URI, 0, 1)) == 1
    scripted.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert scripted.complete(URI, 0, 1) == []


def test_a_document_that_is_closed_while_everything_starts_is_not_sent(
    home: Home, spawn: Spawn
) -> None:
    with daemon_of(home, "ok"):
        client = spawn()
        client.initialize(home.workspace, options=PATIENT)
        client.open(URI, "x")
        request = client.post_completion(URI, 0, 1)
        client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        assert client.reply(request)["result"] == {"items": []}
        assert client.close() == 0


def test_the_engine_is_told_of_closed_documents(scripted: LspClient) -> None:
    for name in ("a", "b"):
        scripted.open(f"file:///w/{name}.py", "x")
        scripted.complete(f"file:///w/{name}.py", 0, 1)
    scripted.notify("textDocument/didClose", {"textDocument": {"uri": "file:///w/a.py"}})
    scripted.open("untitled:1", "what was closed")
    (item,) = scripted.complete("untitled:1", 0, 15)
    assert item["insertText"] == "/w/a.py"


def test_the_engine_is_told_of_closed_documents_that_were_only_read_ahead(
    scripted: LspClient,
) -> None:
    uri, question = "file:///w/a.py", "what was read ahead"
    scripted.open("untitled:1", question)
    scripted.complete("untitled:1", 0, 1)  # it is ready
    scripted.open(uri, "x\n" * 100)
    for line in range(100):
        time.sleep(0.05)  # any request would take the place of reading ahead
        found = scripted.complete("untitled:1", 0, len(question))
        if found and "/w/a.py" in found[0]["insertText"]:
            break
        place = {"line": line, "character": 0}
        scripted.notify("textDocument/didFocus", {"textDocument": {"uri": uri}, "position": place})
    else:
        pytest.fail("it was never read ahead")
    scripted.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    scripted.open("untitled:2", "what was closed")
    (item,) = scripted.complete("untitled:2", 0, 15)
    assert item["insertText"] == "/w/a.py"


def test_a_request_with_wrong_parameters_is_answered(scripted: LspClient) -> None:
    reply = scripted.reply(scripted.post("textDocument/inlineCompletion", {}))
    assert reply["error"]["code"] == -32602
    scripted.open(URI, "x")
    assert len(scripted.complete(URI, 0, 1)) == 1


def test_untitled_documents_are_completed_too(scripted: LspClient) -> None:
    scripted.open("untitled:Untitled-1", "x")
    (item,) = scripted.complete("untitled:Untitled-1", 0, 1)
    assert item["insertText"] == "[x|]"


def test_many_requests_are_each_answered_once(scripted: LspClient) -> None:
    scripted.open(URI, "x")
    requests = [scripted.post_completion(URI, 0, 1) for _ in range(300)]
    for request in requests[::3]:
        scripted.notify("$/cancelRequest", {"id": request})
    replies = [scripted.reply(request) for request in requests]
    assert replies[-1]["result"]["items"]
    for reply in replies:
        assert ("result" in reply) != ("error" in reply)


def test_text_never_appears_on_stderr(scripted: LspClient) -> None:
    scripted.open(URI, "SECRET")
    scripted.notify("textDocument/didOpen", {"text": "SECRET"})
    scripted.notify("textDocument/didChange", {"textDocument": "SECRET"})
    bad = scripted.post("textDocument/inlineCompletion", {"position": "SECRET"})
    assert len(scripted.complete(URI, 0, 6)) == 1
    assert b"SECRET" not in scripted.stderr
    del bad


def test_an_editor_that_vanishes_takes_the_server_along(scripted: LspClient, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(None, options=PATIENT)
    assert client.hang_up() == 0


def test_exit_without_shutdown_is_an_error(scripted: LspClient, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(None, options=PATIENT)
    client.notify("exit", None)
    assert client.wait() == 1


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_it_when_what_it_counted_is_written(scripted: LspClient, name: str) -> None:
    number = signal.Signals[name]
    scripted.open(URI, "x")
    (item,) = scripted.complete(URI, 0, 1)
    scripted.notify("textDocument/didShowCompletion", {"item": item})
    assert len(scripted.complete(URI, 0, 1)) == 1  # what came before was heard
    scripted.process.send_signal(number)
    scripted.process.send_signal(number)
    assert scripted.wait() == -number
    assert summary()[0].n_shown == 1
