"""Messages that are early, late or wrong: as the protocol says, every request is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import PATIENT, Home, Spawn, daemon_of
from tests.rpc import LspClient

ZERO = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
NOT_INITIALIZED, INVALID_REQUEST, UNKNOWN, INVALID = -32002, -32600, -32601, -32602


def send(client: LspClient, message: dict[str, Any], header: bytes = b"Content-Length") -> None:
    """A message whose fields are its own affair."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    assert client.process.stdin is not None
    client.process.stdin.write(b"%s: %d\r\n\r\n%s" % (header, len(body), body))
    client.process.stdin.flush()


def error_of(client: LspClient, message: dict[str, Any]) -> int:
    send(client, {"id": 900, **message})
    error = client.reply(900)["error"]
    assert "data" not in error
    assert "Traceback" not in error["message"]
    return int(error["code"])


@pytest.fixture
def client(home: Home, spawn: Spawn) -> Iterator[LspClient]:
    with daemon_of(home, "ok"):
        yield spawn()


def test_before_initialize_requests_are_errors(client: LspClient) -> None:
    assert error_of(client, {"method": "textDocument/hover", "params": {}}) == NOT_INITIALIZED
    command = {"command": "codespec.accepted", "arguments": ["1"]}
    params = {"method": "workspace/executeCommand", "params": command}
    assert error_of(client, params) == NOT_INITIALIZED
    client.notify("$/setTrace", {"value": "messages"})  # dropped
    client.initialize(options=PATIENT)
    assert client.close() == 0


def test_it_is_initialized_once(client: LspClient) -> None:
    client.initialize(options=PATIENT)
    again = {"method": "initialize", "params": {"capabilities": {}}}
    assert error_of(client, again) == INVALID_REQUEST
    assert client.close() == 0


def test_after_shutdown_requests_are_errors(client: LspClient) -> None:
    client.initialize(options=PATIENT)
    client.request("shutdown", None)
    assert error_of(client, {"method": "shutdown"}) == INVALID_REQUEST
    assert error_of(client, {"method": "no/such", "params": {}}) == INVALID_REQUEST
    client.open("untitled:1", "dropped")
    client.notify("exit", None)
    assert client.wait() == 0


def test_bytes_that_are_no_text_do_not_cost_the_document(client: LspClient) -> None:
    """Neovim sends such bytes of a file that it could not decode."""
    client.initialize(encodings=["utf-8"], options=PATIENT)
    client.wait_for_status("Normal", "ready")
    item = {"uri": "untitled:1", "languageId": "text", "version": 1, "text": "caf\x7f é\x7f\x7f\n"}
    message = {"method": "textDocument/didOpen", "params": {"textDocument": item}}
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
    body = body.replace(b"\x7f\x7f", b"\xe6\x97").replace(b"\x7f", b"\xe9")
    assert client.process.stdin is not None
    client.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    client.process.stdin.flush()
    (found,) = client.complete("untitled:1", 0, 4)
    assert found["insertText"] == "[caf?| é??\n]"
    (found,) = client.complete("untitled:1", 0, 8)
    assert found["insertText"] == "[caf? é?|?\n]"
    assert client.close() == 0


def test_what_is_wrong_is_said_by_its_code(client: LspClient) -> None:
    client.initialize(options=PATIENT)
    assert error_of(client, {"method": "no/such"}) == UNKNOWN
    assert error_of(client, {"method": "no/such", "params": {}}) == UNKNOWN
    assert error_of(client, {"method": "textDocument/inlineCompletion"}) == INVALID
    for arguments in ({}, {"arguments": []}, {"arguments": ["1", "2"]}, {"arguments": [7]}):
        params = {"command": "codespec.accepted", **arguments}
        request = {"method": "workspace/executeCommand", "params": params}
        assert error_of(client, request) == INVALID
    send(client, {"method": "no/such"})
    assert client.close() == 0
    assert b"not understood: textDocument/inlineCompletion" in client.stderr
    assert b"%s" not in client.stderr


@pytest.mark.parametrize("again", ["opened", "whole"])
def test_a_document_whose_change_is_wrong_is_none_until_it_is_sent_anew(
    client: LspClient, again: str
) -> None:
    """Its text here is not what the editor has from then on."""
    client.initialize(options=PATIENT)
    client.wait_for_status("Normal", "ready")
    client.open("untitled:1", "x\n")
    client.complete("untitled:1", 0, 1)
    client.change("untitled:1", 2, {"range": {"start": {"line": 0, "character": -1}}, "text": "y"})
    client.wait_for_status("Inactive", "close it and open it again")
    client.change("untitled:1", 3, {"range": ZERO, "text": "z"})
    assert client.complete("untitled:1", 0, 1) == []
    if again == "opened":
        client.notify("textDocument/didClose", {"textDocument": {"uri": "untitled:1"}})
        client.open("untitled:1", "zxy\n")
    else:
        client.change("untitled:1", 4, {"text": "zxy\n"})
    (found,) = client.complete("untitled:1", 0, 3)
    assert found["insertText"] == "[zxy|\n]"
    client.wait_for_status("Normal", "ready")
    assert client.close() == 0


def test_names_of_headers_are_those_of_http(client: LspClient) -> None:
    params = {"processId": None, "rootUri": None, "capabilities": {}}
    message = {"id": 900, "method": "initialize", "params": params}
    send(client, message, b"content-length")
    assert "capabilities" in client.reply(900)["result"]
    client.notify("initialized", {})
    assert client.close() == 0


def test_a_trace_may_begin_with_initialize(client: LspClient) -> None:
    params = {"processId": None, "rootUri": None, "capabilities": {}, "trace": "messages"}
    client.request("initialize", {**params, "initializationOptions": PATIENT})
    client.notify("initialized", {})
    client.open("untitled:1", "foo(bar)\n")
    assert client.complete("untitled:1", 0, 5, invoked=False) == []
    client.wait_for(lambda m: m["method"] == "$/logTrace")
    assert client.close() == 0
