"""The HTTP front: a process of its own that is one more client of the daemon.

So no web server runs in the daemon, and a front that is overrun costs no editor its suggestions.
Who may ask for what is decided in `access`; what requests and answers look like, in `dialects`.
Nothing that a request says is logged.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, MutableMapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from codespec import limits
from codespec.config import Settings
from codespec.daemon.access import Access, Refused
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.bodies import FieldError
from codespec.daemon.current import CurrentDaemon
from codespec.daemon.dialects import Dialect, Infill, OpenAICompletions
from codespec.daemon.logs import outline
from codespec.engine.until import Until
from codespec.errors import CodespecError, InputError
from codespec.requests import Completion, CompletionRequest, Progress

log = logging.getLogger(__name__)

MAX_BODY_BYTES = limits.BODY_BYTES
MAX_WAITING = limits.HTTP_WAITING
MAX_WAITING_OF_ONE = limits.HTTP_WAITING_OF_ONE
_MAX_CONNECTIONS = limits.CLIENTS
_LENGTH_DIGITS = 20
_HEAD_S = 10.0
_BODY_S = 30.0
_ANSWER_S = 300.0
_SEND_S = 30.0
_KEEP_ALIVE_S = 30
_FAREWELL_S = 1.0
"""No two requests are of one document: none takes another's place, and there is none to close."""

_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_POSTS: dict[str, type[Dialect]] = {"/v1/completions": OpenAICompletions, "/infill": Infill}
_HEALTH = ("/health", "/v1/health")
_MODELS = "/v1/models"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "unavailable_error",
}


class Front:
    """The ASGI application."""

    def __init__(self, settings: Settings, access: Access) -> None:
        self._access = access
        self._daemon = CurrentDaemon(settings)
        self._waiting = Counter[str]()  # by key

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        reply = _Reply(send)
        try:
            await self._route(scope, receive, reply)
        except Refused as e:
            await reply.error(e.status, e.message, e.field, e.headers)
        except InputError as e:
            await reply.error(400, str(e), e.field if isinstance(e, FieldError) else "")
        except CodespecError as e:
            await reply.error(503, str(e))
        except asyncio.CancelledError:  # only the server's end cancels a request
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(reply.error(503, "the server is stopping"), _FAREWELL_S)
        except Exception as e:
            log.error("%s", outline(e))  # its message may quote source text
            await reply.error(500, f"codespec failed: {type(e).__name__}")

    async def _route(self, scope: _Scope, receive: _Receive, reply: _Reply) -> None:
        path, headers = scope["path"], dict[bytes, bytes](scope["headers"])
        key = self._access.check(headers, is_public=path in _HEALTH)
        dialect = _POSTS.get(path)
        is_model = path.startswith(f"{_MODELS}/")
        if dialect is None and path not in (*_HEALTH, _MODELS) and not is_model:
            raise Refused(404, f"only {', '.join((*_POSTS, _MODELS, '/health'))}")
        methods = ("GET", "HEAD") if dialect is None else ("POST",)
        if scope["method"] not in methods:
            raise Refused(405, f"only {methods[0]}", Allow=", ".join(methods))
        if dialect is None:
            if path in _HEALTH:
                found = self._health(is_known=key is not None)
            elif is_model:
                found = self._model_named(path.removeprefix(f"{_MODELS}/"))
            else:
                found = {"object": "list", "data": [self._model()]}
            await reply.json(200, found)
        else:
            assert key is not None  # nothing of this is public
            with self._admitted(key):
                await self._receive_and_answer(dialect, headers, receive, reply)

    @contextmanager
    def _admitted(self, key: str) -> Generator[None]:
        """Raises: Refused."""
        if self._waiting.total() >= MAX_WAITING:
            raise Refused(503, "too many requests are waiting", Retry_After="1")
        if len(self._access.keys) > 1 and self._waiting[key] >= MAX_WAITING_OF_ONE:
            raise Refused(429, "too many requests of this key are waiting", Retry_After="1")
        self._waiting[key] += 1
        try:
            yield
        finally:
            self._waiting[key] -= 1

    def _health(self, is_known: bool = True) -> dict[str, Any]:
        """Of files on this machine whoever showed no key is told nothing."""
        self._daemon.connect()
        state, warning = self._daemon.state, self._daemon.why_outdated
        if state.state != "ready":
            if not is_known:  # a reason names files, too
                raise Refused(503, state.state)
            why = ": ".join(filter(None, (state.state, state.reason)))
            raise Refused(503, "\n  ".join(filter(None, (why, state.hint, warning))))
        return {"status": "ok", "warning": warning} if warning and is_known else {"status": "ok"}

    def _model(self) -> dict[str, Any]:
        self._health()
        name = self._daemon.state.model
        return {"id": name, "object": "model", "created": 0, "owned_by": "codespec"}

    def _model_named(self, name: str) -> dict[str, Any]:
        model = self._model()
        if name != model["id"]:
            raise Refused(404, f"no such model; GET {_MODELS} names the one there is", "model")
        return model

    async def _receive_and_answer(
        self, dialect: type[Dialect], headers: dict[bytes, bytes], receive: _Receive, reply: _Reply
    ) -> None:
        try:
            raw = await asyncio.wait_for(_body(headers, receive), _BODY_S)
        except asyncio.TimeoutError:
            raise Refused(408, "the body did not come in time", Connection="close") from None
        if raw is None:
            return
        read = dialect(raw, self._daemon.state.model)
        answering = asyncio.create_task(self._answer(read, reply))
        leaving = asyncio.create_task(_left(receive))
        both = {answering, leaving}
        try:
            # Longer than an answer may take: a client that does not read it is let go.
            limit_s = _ANSWER_S + _SEND_S
            await asyncio.wait(both, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_answered = answering.done()
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        if is_answered:
            answering.result()

    async def _answer(self, dialect: Dialect, reply: _Reply) -> None:
        workspace, path = self._access.place(dialect.document)
        with self._daemon.client() as client:
            defaults = self._daemon.settings.completion
            requests = [
                replace(
                    request,
                    workspace=workspace,
                    path=path,
                    deadline_ms=_ANSWER_S * 1e3,
                    lends=False,  # what one client sent is shown to no other
                )
                for request in dialect.requests(defaults)
            ]
            request = requests[0]
            if dialect.only_reads:
                client.connect()
                client.prefetch(replace(request, max_tokens=defaults.max_tokens))
                nothing = Completion(finish="length")
                if dialect.streams:
                    await reply.end(dialect.end("", nothing))
                else:
                    await reply.json(200, dialect.answer([nothing] * len(requests)))
            elif dialect.streams:
                await self._stream(client, dialect, request, reply)
            else:
                await reply.json(200, dialect.answer(await _in_turn(client, requests)))

    async def _stream(
        self, client: AsyncClient, dialect: Dialect, request: CompletionRequest, reply: _Reply
    ) -> None:
        until = Until(request.stop, request.min_indent)
        news, said, n_sent = asyncio.Event(), "", 0

        def hear(progress: Progress) -> None:
            nonlocal said
            said = progress.text
            news.set()

        asking = asyncio.create_task(client.ask(request, hear))
        asking.add_done_callback(lambda _: news.set())
        try:
            while True:
                await news.wait()
                news.clear()
                if asking.done():
                    break
                # What an editor would suggest is known at the end only.
                text = until.settled(said) if request.verbatim else ""
                if len(text) > n_sent:
                    await reply.event(dialect.part(text[n_sent:]))
                    n_sent = len(text)
            completion = _made(asking.result())
            await reply.end(dialect.end(completion.text[n_sent:], completion))
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    def start(self) -> None:
        """Begin to start or join the daemon."""
        self._daemon.connect()

    async def close(self) -> None:
        await self._daemon.close()


async def _in_turn(client: AsyncClient, requests: Sequence[CompletionRequest]) -> list[Completion]:
    """All in the time that one has."""
    loop, completions = asyncio.get_running_loop(), list[Completion]()
    ends_s = loop.time() + _ANSWER_S
    for request in requests:
        left_ms = max(1.0, (ends_s - loop.time()) * 1e3)
        asked = replace(request, deadline_ms=left_ms)
        completions.append(_made(await client.ask(asked)))
    return completions


def _made(completion: Completion) -> Completion:
    """Raises: Refused for an answer that no model made, or none in time."""
    is_late = completion.finish in ("deadline", "cancelled")
    if not completion.text and (is_late or not completion.trace.model):
        raise Refused(503, completion.reason, Retry_After="1")
    return completion


class _Reply:
    def __init__(self, send: _Send) -> None:
        self._send = send
        self._streams = False

    async def json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        body = msgspec.json.encode(value)
        headers = {"Content-Length": str(len(body)), **(headers or {})}
        await self._start(status, "application/json", headers)
        await self._send({"type": "http.response.body", "body": body})

    async def event(self, value: Any) -> None:
        """Server-sent: https://html.spec.whatwg.org/multipage/server-sent-events.html"""
        if not self._streams:
            self._streams = True
            await self._start(200, "text/event-stream", {"Cache-Control": "no-cache"})
        data = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
        body = b"data: " + data + b"\n\n"
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self, events: Sequence[Any]) -> None:
        for event in events:
            await self.event(event)
        await self._send({"type": "http.response.body", "body": b""})

    async def error(
        self, status: int, message: str, field: str = "", headers: dict[str, str] | None = None
    ) -> None:
        kind = _KINDS.get(status, _KINDS[400])
        error = {"message": message, "type": kind, "param": field or None, "code": status}
        if self._streams:
            await self.end([{"error": error}])
        else:
            await self.json(status, {"error": error}, headers)

    async def _start(self, status: int, kind: str, headers: dict[str, str]) -> None:
        rows = {"Content-Type": kind, **headers}
        pairs = [(k.replace("_", "-").lower().encode(), v.encode()) for k, v in rows.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})


async def _body(headers: dict[bytes, bytes], receive: _Receive) -> bytes | None:
    """None for a client that left. Raises: Refused for a body that is too large."""
    too_large = Refused(413, f"a body has at most {MAX_BODY_BYTES} bytes: send less text")
    length = headers.get(b"content-length", b"0")
    if len(length) > _LENGTH_DIGITS or int(length) > MAX_BODY_BYTES:
        raise too_large
    parts: list[bytes] = []
    n_bytes = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        n_bytes += len(parts[-1])
        if n_bytes > MAX_BODY_BYTES:
            raise too_large
        if not message.get("more_body"):
            return b"".join(parts)


async def _left(receive: _Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Protocol(H11Protocol):
    """Gives a request's head a time to come: uvicorn waits for the first one of a connection, and
    for the rest of one that has begun, for ever. Offers to upgrade (HTTP/2's are many clients'
    habit) are passed over, as servers may (RFC 9110, 7.8); uvicorn would warn of each."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._expect_head(_HEAD_S)

    def _should_upgrade(self) -> bool:
        return False

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._no_head.cancel()

    def on_response_complete(self) -> None:
        self._no_head.cancel()
        self._expect_head(_KEEP_ALIVE_S + _HEAD_S)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._no_head.cancel()
        super().connection_lost(exc)

    def _expect_head(self, limit_s: float) -> None:
        self._no_head = self.loop.call_later(limit_s, self.transport.close)


# --- starting it ----------------------------------------------------------------------------


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Requests that it cancels get to say so: after it, the signal is raised once more."""
        await super().shutdown(sockets)
        if not self.force_exit:
            await asyncio.gather(*self.server_state.tasks, return_exceptions=True)


def serve(settings: Settings, listener: socket.socket, access: Access) -> None:
    """Until a signal ends it."""

    async def run() -> None:
        front = Front(settings, access)
        front.start()
        config = uvicorn.Config(
            front,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
        )
        try:
            await _Server(config).serve([listener])
        finally:
            await front.close()

    with closing(listener):
        asyncio.run(run())
