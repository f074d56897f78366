"""An editor's messages and documents have bounds: what is beyond them is refused or left alone,
and all else goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from codespec import limits
from codespec_lsp.bounds import is_integer, read_away
from codespec_lsp.handlers import make_server
from codespec_lsp.index_processes import Indexer
from codespec_lsp.language_server import CodespecServer
from codespec_lsp.pipes import as_expected
from codespec_lsp.uris import path_of

URI = "file:///w/a.py"


class Written:
    """Bytes that a server wrote."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.messages.append(json.loads(data.split(b"\r\n\r\n", 1)[-1]))

    def close(self) -> None:
        pass


@pytest.fixture
def server() -> CodespecServer:
    server = make_server()
    server.protocol.set_writer(Written())  # pyright: ignore[reportArgumentType]
    say(server, "initialize", {"capabilities": {}, "processId": None, "rootUri": None}, id=1)
    return server


def say(server: CodespecServer, method: str, params: object, **others: object) -> None:
    """A message, through all that a real one goes through."""
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **others})
    hear(server, body.encode())


def hear(server: CodespecServer, body: bytes) -> None:
    async def handled() -> None:
        with contextlib.suppress(JsonRpcException, RecursionError):
            message = json.loads(body, object_hook=server.protocol.structure_message)
            server.protocol.handle_message(message)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run(handled())


def open_document(
    server: CodespecServer, text: str, uri: str = URI, language: str = "python"
) -> None:
    document = {"uri": uri, "languageId": language, "version": 1, "text": text}
    say(server, "textDocument/didOpen", {"textDocument": document})


def change(server: CodespecServer, *said: dict[str, Any], uri: str = URI, version: int = 2) -> None:
    where = {"uri": uri, "version": version}
    say(server, "textDocument/didChange", {"textDocument": where, "contentChanges": list(said)})


def insert(text: str, line: int = 0) -> dict[str, Any]:
    at = {"line": line, "character": 0}
    return {"range": {"start": at, "end": at}, "text": text}


def why(server: CodespecServer, uri: str = URI) -> str:
    return server.left_alone[uri][1]


@pytest.mark.parametrize("bound", ["DOCUMENT_CHARS", "DOCUMENT_LINES", "OPEN_CHARS"])
def test_a_document_that_is_too_large_is_left_alone(
    server: CodespecServer, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(limits, bound, 8)
    most = "\n" * 8 if bound == "DOCUMENT_LINES" else "12345678"
    open_document(server, most)
    assert server.documents[URI].text == most
    open_document(server, most + "\n")
    assert URI not in server.documents
    assert "too large" in why(server) or "too much is open" in why(server)
    change(server, insert("x"))  # of a text that is not known
    assert URI not in server.documents
    change(server, {"text": "x"})
    assert server.documents[URI].text == "x"
    change(server, insert("\n" * 10))
    assert URI not in server.documents
    say(server, "textDocument/didClose", {"textDocument": {"uri": URI}})
    assert URI not in server.left_alone


def test_so_many_documents_are_open(
    server: CodespecServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DOCUMENTS", 2)
    for name in "abc":
        open_document(server, name, f"file:///w/{name}.py")
    assert list(server.documents) == ["file:///w/a.py", "file:///w/b.py"]
    assert "close others" in why(server, "file:///w/c.py")
    open_document(server, "b2", "file:///w/b.py")
    assert server.documents["file:///w/b.py"].text == "b2"


def test_names_are_so_long(server: CodespecServer) -> None:
    longest = "file:///" + "a" * (limits.URI_CHARS - 8)
    for uri in (longest, longest + "a"):
        open_document(server, "x", uri)
    assert list(server.documents) == [longest]
    assert server.left_alone == {}
    assert path_of(longest + "a") == ""
    for n, language in ((limits.NAME_CHARS, "l" * limits.NAME_CHARS), (limits.NAME_CHARS + 1, "")):
        open_document(server, "x", language="l" * n)
        assert server.documents[URI].language_id == language


def test_a_message_has_so_many_changes(server: CodespecServer) -> None:
    open_document(server, "")
    change(server, *[insert("x")] * limits.CHANGES)
    assert server.documents[URI].text == "x" * limits.CHANGES
    change(server, *[insert("x")] * (limits.CHANGES + 1))
    assert "not understood" in why(server)


def test_numbers_are_those_that_json_carries(server: CodespecServer) -> None:
    most = limits.INTEGER
    assert is_integer(most)
    assert is_integer(-most)
    assert not any(map(is_integer, (most + 1, -most - 1, True, 1.0, "1")))
    open_document(server, "a\n")
    change(server, insert("x", most), version=most)
    assert server.documents[URI].text == "a\nx"
    for beyond in (most + 1, 10**4000):
        open_document(server, "a")
        change(server, insert("x"), version=beyond)
        assert "not understood" in why(server)
    open_document(server, "a")
    change(server, insert("x", most + 1))
    assert "not understood" in why(server)


def test_json_has_so_many_levels(server: CodespecServer) -> None:
    written = Written()
    server.protocol.set_writer(written)  # pyright: ignore[reportArgumentType]
    nested: list[Any] = []
    for _ in range(limits.DEPTH - 3):
        nested = [nested]
    for said, is_refused in ((nested, False), ([nested], True)):
        written.messages.clear()
        say(server, "workspace/executeCommand", {"command": "x", "arguments": said}, id=7)
        [answer] = written.messages
        assert ("levels" in answer["error"]["message"]) == is_refused
    hear(server, b'{"jsonrpc": "2.0", "method": "x", "params": ' + b"[" * 10**5 + b"]" * 10**5)
    open_document(server, "still here")
    assert URI in server.documents


def test_an_id_is_so_long(server: CodespecServer) -> None:
    written = Written()
    server.protocol.set_writer(written)  # pyright: ignore[reportArgumentType]
    for n in (limits.NAME_CHARS, limits.NAME_CHARS + 1):
        say(server, "no/such", None, id="i" * n)
    known, refused = written.messages
    assert known["id"] == "i" * limits.NAME_CHARS
    assert "at most" in refused["error"]["message"]
    assert len(refused["id"]) < limits.NAME_CHARS


def test_objects_of_a_notification_are_no_classes(server: CodespecServer) -> None:
    """pygls makes one of each: these took nine seconds."""
    say(server, "textDocument/didFocus", {"textDocument": {"uri": URI}, "x": [{"b": 1}] * 10**5})
    before = len(object.__subclasses__())
    say(server, "no/such", {"x": [{"c": 1}] * 1000})
    assert len(object.__subclasses__()) == before
    assert len(tuple.__subclasses__()) < 10_000


# --- messages that are not read ---------------------------------------------------------------


def away(body: bytes) -> bytes:
    async def read() -> bytes:
        stream = asyncio.StreamReader()
        stream.feed_data(body)
        stream.feed_eof()
        return await read_away(len(body), stream.readexactly)

    return asyncio.run(read())


@pytest.mark.parametrize("text_first", [True, False])
@pytest.mark.parametrize("method", ["textDocument/didOpen", "textDocument/didChange"])
def test_a_document_whose_message_is_too_large(
    server: CodespecServer, method: str, text_first: bool
) -> None:
    text = 'x = {"uri": "file:///other", "method": "exit"}\n' * 100_000
    document = {"uri": URI, "version": 2, "languageId": "python"}
    content = {"text": text} if method.endswith("Open") else {}
    params: dict[str, Any] = {"textDocument": {**content, **document}}
    if method.endswith("Change"):
        changed = {"contentChanges": [{"text": text}]}
        params = {**changed, **params} if text_first else {**params, **changed}
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if text_first:
        message = dict(reversed(message.items()))
    open_document(server, "a")
    open_document(server, "b", "file:///w/b.py")
    hear(server, away(json.dumps(message).encode()))
    assert list(server.documents) == ["file:///w/b.py"]
    assert "too large" in why(server)


def test_a_request_that_is_too_large_is_answered(server: CodespecServer) -> None:
    written = Written()
    server.protocol.set_writer(written)  # pyright: ignore[reportArgumentType]
    big = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "textDocument/inlineCompletion",
        "params": "x" * 10**6,
    }
    hear(server, away(json.dumps(big).encode()))
    assert [m["id"] for m in written.messages] == [9]
    assert "error" in written.messages[0]


def test_of_a_message_that_does_not_say_what_it_is_nothing_is_taken_for_known(
    server: CodespecServer,
) -> None:
    open_document(server, "a")
    hear(server, away(b"[" + b"1," * 10**6 + b"1]"))
    assert server.documents == {}
    assert "not understood" in why(server)
    open_document(server, "a")
    assert server.left_alone == {}


def test_a_message_that_does_not_come_to_its_end() -> None:
    async def read() -> bytes:
        async def nothing(_: int) -> bytes:
            return b""

        return await read_away(1 << 60, nothing)

    assert asyncio.run(read()) == b""


def test_a_length_that_nothing_has_ends_the_input() -> None:
    assert as_expected(b"Content-Length: 123\r\n") == b"Content-Length: 123\r\n"
    assert as_expected(b"Content-Length: " + b"9" * 5000 + b"\r\n") == b""


def test_so_many_folders_are_watched(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch() -> int:
        indexer = Indexer(lambda root: [os.devnull, root])
        for n in range(limits.FOLDERS + 1):
            (tmp_path / str(n)).mkdir()
            indexer.watch(str(tmp_path / str(n)))
        n_watched = len(indexer._tasks)
        await indexer.close()
        return n_watched

    assert asyncio.run(watch()) == limits.FOLDERS
