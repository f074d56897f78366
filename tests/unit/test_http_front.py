"""Limits of the HTTP front, asked as an ASGI server asks it; no daemon is needed to refuse."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from codespec.config import Settings
from codespec.daemon import http
from codespec.daemon.access import Access, is_loopback, listen
from codespec.daemon.http import Front

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
    asyncio.run(Front(Settings(), Access())(scope, receive, send))
    return sent


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def endless() -> Message:
    return {"type": "http.request", "body": b" " * 100_000, "more_body": True}


async def leaves() -> Message:
    return {"type": "http.disconnect"}


def refusal(sent: list[Message]) -> tuple[int, str]:
    start, body = sent
    return start["status"], json.loads(body["body"])["error"]["message"]


def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_BODY_S", 0.01)
    assert refusal(ask(never)) == (408, "the body did not come in time")


def test_a_body_without_end_or_too_large_is_not_taken_in() -> None:
    assert refusal(ask(endless))[0] == 413
    assert refusal(ask(never, (b"content-length", b"4194305")))[0] == 413


def test_a_client_that_leaves_early_is_not_answered() -> None:
    assert ask(leaves) == []


def test_more_requests_than_can_be_answered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_WAITING", 0)
    sent = ask(never)
    assert refusal(sent) == (503, "too many requests are waiting")
    assert (b"retry-after", b"1") in sent[0]["headers"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.168.0.1", "localhost.example", "1"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


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
