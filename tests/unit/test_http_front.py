"""Limits of the HTTP front, asked as an ASGI server asks it; no daemon is needed to refuse."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from codespec.config import Settings
from codespec.daemon.async_client import AsyncClient
from codespec.errors import ConfigError
from codespec.http import front, inbound
from codespec.http import server as http_server
from codespec.http.access import Access, listen
from codespec.http.front import HttpFront

Message = dict[str, Any]


def ask(receive: Callable[[], Awaitable[Message]], *headers: tuple[bytes, bytes]) -> list[Message]:
    """All that is sent in answer to a POST."""
    sent: list[Message] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/infill",
        "headers": [(b"host", b"localhost"), *headers],
    }
    asyncio.run(HttpFront(Settings(), Access())(scope, receive, send))
    return sent


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def endless() -> Message:
    return {"type": "http.request", "body": b" " * 100_000, "more_body": True}


async def leaves() -> Message:
    return {"type": "http.disconnect"}


def refusal(sent: list[Message]) -> tuple[int, str]:
    start, *bodies = sent
    body = b"".join(message["body"] for message in bodies)
    return start["status"], json.loads(body)["error"]["message"]


def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "_PROGRESS_S", 0.01)
    assert refusal(ask(never, (b"content-length", b"5"))) == (408, "the body did not come in time")


HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("said", [b"", HEAD, HEAD + b"\r\n", HEAD + b"\r\n" + HEAD])
def test_a_head_that_does_not_come(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """The first one of a connection, or the next one: it is closed."""
    monkeypatch.setattr(http_server, "_HEAD_S", 0.2)
    monkeypatch.setattr(http_server, "_KEEP_ALIVE_S", 0.0)

    async def heard() -> bytes:
        config = uvicorn.Config(HttpFront(Settings(), Access(("k" * 32,))), log_config=None)
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: http_server.HttpProtocol(config, state, {}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(said.replace(b"health", b"infill"))
        found = await asyncio.wait_for(reader.read(), 30.0)
        writer.close()
        server.close()
        return found

    assert asyncio.run(heard()).count(b"HTTP/1.1 401") == said.count(b"\r\n\r\n")


def test_a_body_without_end_or_too_large_is_not_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "_PROGRESS_S", 0.01)
    assert refusal(ask(endless))[0] == 413
    assert refusal(ask(never, (b"content-length", b"4194305")))[0] == 413


def test_a_client_that_leaves_early_is_not_answered() -> None:
    assert ask(leaves) == []


def test_a_client_that_does_not_read_does_not_hold_up_the_servers_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front, "_FAREWELL_S", 0.01)
    n_sent = 0

    async def stuck(_: object) -> None:
        nonlocal n_sent
        n_sent += 1
        await never()

    async def end() -> None:
        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": "/infill", "headers": headers}
        answering = asyncio.create_task(HttpFront(Settings(), Access())(scope, never, stuck))
        await asyncio.sleep(0)
        answering.cancel()
        await asyncio.wait_for(answering, 30.0)

    asyncio.run(end())
    assert n_sent == 1


def test_a_fault_in_the_servers_settings_is_not_the_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = iter([{"type": "http.request", "body": b"{}"}])

    async def once() -> Message:
        return next(said, None) or await never()

    async def fail(*_: object, **__: object) -> None:
        raise ConfigError("the folder is not writable")

    monkeypatch.setattr(AsyncClient, "ask", fail)
    assert refusal(ask(once)) == (503, "the folder is not writable")


def test_more_requests_than_can_be_answered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "MAX_WAITING", 0)
    sent = ask(never)
    assert refusal(sent) == (503, "too many requests are waiting")
    assert (b"retry-after", b"1") in sent[0]["headers"]


def test_who_has_one_of_several_keys_shuts_out_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "MAX_WAITING_OF_ONE", 1)
    monkeypatch.setattr(AsyncClient, "ask", lambda *_, **__: never())

    async def answers(*keys: str) -> list[list[Message]]:
        """Immediate answers to clients that ask with these keys, one after the other."""
        app = HttpFront(Settings(), Access(("a" * 32, "b" * 32)))
        sent: list[list[Message]] = []
        tasks = list[asyncio.Task[None]]()
        for key in keys:
            said: list[Message] = []

            async def send(message: Any, said: list[Message] = said) -> None:
                said.append(message)

            headers = [(b"authorization", b"Bearer " + key.encode() * 32)]
            scope = {"type": "http", "method": "POST", "path": "/infill", "headers": headers}
            body = iter([{"type": "http.request", "body": b"{}"}])

            async def receive(body: Iterator[Message] = body) -> Message:
                return next(body, None) or await never()

            n_before = app._waiting.total()
            tasks.append(asyncio.create_task(app(scope, receive, send)))
            while not said and app._waiting.total() == n_before:
                await asyncio.sleep(0.001)
            sent.append(list(said))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)
        return sent

    first, again, other = asyncio.run(answers("a", "a", "b"))
    assert (first, other) == ([], []), "they wait"
    assert refusal(again) == (429, "too many requests of this key are waiting")


def test_an_address_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint names the wrong part of the address: a taken port, else the host."""
    with listen("127.0.0.1", 0, Access()) as taken:
        with pytest.raises(ConfigError) as caught:
            listen("127.0.0.1", taken.getsockname()[1], Access())
        assert "--port" in caught.value.hint

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ConfigError, match="not known") as caught:
        listen("nowhere.example", 0, Access())
    assert "--host" in caught.value.hint


def test_answers_are_sent_at_once() -> None:
    """Not held back until their beginning is acknowledged."""

    async def nodelay() -> int:
        accepted = asyncio.get_running_loop().create_future()

        def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set_result(writer)

        with listen("127.0.0.1", 0, Access()) as listener:
            server = await asyncio.start_server(accept, sock=listener)
            _, client = await asyncio.open_connection(*listener.getsockname())
            writer = await accepted
            found = writer.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY
            )
            for end in (client, writer):
                end.close()
                await end.wait_closed()
            server.close()
            await server.wait_closed()
        return found

    assert asyncio.run(nodelay()) != 0
