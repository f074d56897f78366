"""Bodies on their way to the HTTP front, on real connections: bounded in bytes and time, and
answers that come before a body is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from uvicorn.server import ServerState

from codespec import limits
from codespec.config import Settings
from codespec.daemon.async_client import AsyncClient
from codespec.http import inbound
from codespec.http import server as http_server
from codespec.http.access import Access
from codespec.http.front import HttpFront
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
KEYS = ("a" * 32, "b" * 32)


@pytest.fixture
def may_answer() -> asyncio.Event:
    """Lets the daemon answer the prompt "slow"."""
    return asyncio.Event()


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch, may_answer: asyncio.Event) -> list[CompletionRequest]:
    """The requests that reach the daemon, which echoes prompts."""
    requests: list[CompletionRequest] = []

    async def answer(
        _: AsyncClient, request: CompletionRequest, *__: object, **___: object
    ) -> Completion:
        requests.append(request)
        if request.prefix == "until cancelled":
            await asyncio.Event().wait()
        if request.prefix == "slow":
            await may_answer.wait()
        return Completion(request.insertion(request.prefix[-20:]), "stop", trace=Trace(model="m"))

    monkeypatch.setattr(AsyncClient, "ask", answer)
    return requests


class Serving:
    def __init__(self, front: HttpFront, server: asyncio.Server) -> None:
        self.front, self._server = front, server
        self._writers: list[asyncio.StreamWriter] = []

    async def send(self, raw: bytes) -> Connection:
        reader, writer = await asyncio.open_connection(*self._server.sockets[0].getsockname()[:2])
        self._writers.append(writer)
        writer.write(raw)
        return reader, writer

    async def until_taken(self, n_bytes: int) -> None:
        """Wait until bodies under way have so many bytes."""
        while self.front._under_way._n_bytes.total() != n_bytes:
            await asyncio.sleep(0.01)

    async def answer(self, raw: bytes) -> bytes:
        return await rest(await self.send(raw))

    def close(self) -> None:
        for writer in self._writers:
            writer.close()
        self._server.close()


@asynccontextmanager
async def serving(*keys: str) -> AsyncGenerator[Serving]:
    front = HttpFront(Settings(), Access(keys))
    config = uvicorn.Config(front, log_config=None, limit_concurrency=limits.CLIENTS)
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: http_server.HttpProtocol(config, state, {}), "127.0.0.1", 0
    )
    serving = Serving(front, server)
    try:
        yield serving
    finally:
        serving.close()
        for task in state.tasks:
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        await front.close()


def post(length: int, *rows: str, path: str = "/v1/completions") -> bytes:
    """The head of a request with a body of so many bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", *rows]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(prompt: str, *rows: str) -> bytes:
    body = json.dumps({"prompt": prompt, "max_tokens": 3}).encode()
    return post(len(body), "Connection: close", *rows) + body


async def rest(connection: Connection) -> bytes:
    return await asyncio.wait_for(connection[0].read(), 60.0)


@pytest.mark.asyncio
async def test_the_answer_to_a_body_that_is_too_large_arrives() -> None:
    n = 2 * limits.BODY_BYTES
    async with serving() as served:
        for close in ((), ("Connection: close",)):
            reader, writer = await served.send(post(n, *close))
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60.0)
            assert head.startswith(b"HTTP/1.1 413 ")
            for _ in range(n // (1 << 16)):
                writer.write(b"a" * (1 << 16))
                await writer.drain()
            assert b"send less text" in await rest((reader, writer))


@pytest.mark.asyncio
async def test_any_answer_arrives_before_the_body_is_over() -> None:
    async with serving(*KEYS) as served:
        reader, writer = await served.send(post(1 << 20, "Connection: close"))
        writer.write(b"a" * (1 << 19))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60.0)
        assert head.startswith(b"HTTP/1.1 401 ")
        writer.write(b"a" * (1 << 19))
        assert b"a key is needed" in await rest((reader, writer))


@pytest.mark.asyncio
async def test_two_lengths_of_a_body_close_the_connection(said: list[CompletionRequest]) -> None:
    smuggled = whole("smuggled")
    async with serving() as served:
        raw = post(5, "Transfer-Encoding: chunked") + b"0\r\n\r\n" + smuggled
        connection = await served.send(raw)
        answer = await rest(connection)
        assert answer.count(b"HTTP/1.1 ") == 1
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close" in answer.lower()
    assert said == []


@pytest.mark.asyncio
async def test_requests_in_other_forms_are_answered() -> None:
    async with serving() as served:
        for old, new in (
            (b"POST /v1", b"POST http://localhost/v1"),  # as before a proxy
            (b"POST /v1", b"POST HTTP://127.0.0.1:8012//v1"),
            (b"POST", b"\r\n\r\nPOST"),
            (b"1.1\r\nHost: localhost\r\n", b"1.0\r\n"),
        ):
            answer = await served.answer(whole("x").replace(old, new, 1))
            assert answer.startswith(b"HTTP/1.1 200 "), new


@pytest.mark.asyncio
async def test_the_host_in_a_target_is_the_one_that_counts() -> None:
    async with serving() as served:
        raw = whole("x").replace(b"POST /", b"POST http://example.org/", 1)
        assert (await served.answer(raw)).startswith(b"HTTP/1.1 403 ")


@pytest.mark.asyncio
async def test_a_packed_body_is_refused_by_its_header() -> None:
    async with serving() as served:
        answer = await served.answer(whole("x", "Content-Encoding: gzip"))
        assert answer.startswith(b"HTTP/1.1 415 ")
        assert b"accept-encoding: identity" in answer.lower()
        assert b"without Content-Encoding" in answer
        answer = await served.answer(whole("x", "Content-Encoding: identity"))
        assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.asyncio
async def test_half_sent_bodies_take_nobodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "_PROGRESS_S", 1.0)
    async with serving() as served:
        half = [await served.send(post(100) + b"{") for _ in range(2 * limits.HTTP_WAITING)]
        assert (await served.answer(whole("x"))).startswith(b"HTTP/1.1 200 ")
        answers = [await rest(connection) for connection in half]
        assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)


@pytest.mark.asyncio
async def test_bodies_under_way_are_bounded_and_no_key_takes_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HTTP_BODIES_BYTES", 4000)
    monkeypatch.setattr(inbound, "_PROGRESS_S", 60.0)
    first, second = (f"X-Api-Key: {key}" for key in KEYS)
    async with serving(*KEYS) as served:
        waiting = await served.send(post(3000, first) + b" " * 1500)
        await served.until_taken(1500)
        over = await served.answer(whole("x" * 1000, first))
        assert over.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1" in over.lower()
        assert (await served.answer(whole("x" * 1000, second))).startswith(b"HTTP/1.1 200")
        waiting[1].write(b" " * 400)
        other = await served.send(post(3000, second) + b" " * 1900)
        await served.until_taken(3800)
        over = await served.answer(whole("x" * 200, second))
        assert over.startswith(b"HTTP/1.1 503 ")
        for _, writer in (waiting, other):
            writer.close()
        # What was taken is given back.
        await served.until_taken(0)
        for key in (first, second):
            answer = await served.answer(whole("x" * 1000, key))
            assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.asyncio
@pytest.mark.parametrize("prompt", ["x", "slow"])
async def test_a_client_that_ends_its_side_gets_its_answer(
    prompt: str, monkeypatch: pytest.MonkeyPatch, may_answer: asyncio.Event
) -> None:
    is_slow = prompt == "slow"
    monkeypatch.setattr(http_server, "_PROBE_S", 0.05 if is_slow else 60.0)
    async with serving() as served:
        for raw in (whole(prompt), whole(prompt).replace(b"Connection: close\r\n", b"")):
            may_answer.clear()
            reader, writer = await served.send(raw)
            writer.write_eof()
            if is_slow:
                interim = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60.0)
                assert interim.startswith(b"HTTP/1.1 102 ")
                may_answer.set()
            answer = await rest((reader, writer))
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert answer.count(b"HTTP/1.1 ") == 1
            assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["choices"][0]["text"] == prompt


@pytest.mark.asyncio
async def test_a_client_that_ended_its_side_and_leaves_is_missed(
    monkeypatch: pytest.MonkeyPatch, said: list[CompletionRequest]
) -> None:
    monkeypatch.setattr(http_server, "_PROBE_S", 0.05)
    async with serving() as served:
        for is_sudden in (False, True):
            connection = await served.send(whole("until cancelled"))
            while len(said) <= is_sudden:
                await asyncio.sleep(0.01)
            if not is_sudden:
                connection[1].write_eof()
            connection[1].close()
            while served.front._waiting.total():
                await asyncio.sleep(0.01)


@pytest.mark.asyncio
async def test_half_a_request_that_ends_is_not_waited_for() -> None:
    async with serving() as served:
        for raw in (b"", b"POST /inf", post(100), post(100) + b"{"):
            connection = await served.send(raw)
            connection[1].write_eof()
            assert await rest(connection) == b""


@pytest.mark.asyncio
async def test_long_bodies_are_read_beside_the_event_loop() -> None:
    """While one of markers alone is read, others are answered."""
    body = json.dumps({"prompt": "<|fim_prefix|><|fim_suffix|>" * 70_000}).encode()
    async with serving() as served:
        reading = asyncio.create_task(
            rest(await served.send(post(len(body), "Connection: close") + body))
        )
        n_between = 0
        while not reading.done():
            assert b" 200 " in await served.answer(whole("x"))
            n_between += not reading.done()
        assert b"HTTP/1.1 " in reading.result()
        assert n_between > 1
