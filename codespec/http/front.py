"""The HTTP front: a process of its own that is one more client of the daemon.

So no web server runs in the daemon, and a front that is overrun costs no editor its suggestions.
`access` decides which clients may ask for what; `dialects` know the forms of requests and answers.
No content of a request is logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import ParamSpec, TypeVar
from urllib.parse import parse_qsl

from codespec import limits
from codespec.config import Settings
from codespec.daemon import wire
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.current_client import CurrentClient
from codespec.errors import CodespecError, InputError
from codespec.http.access import Access, KeyRefused, Refused
from codespec.http.access_log import AccessLog
from codespec.http.cors import allowed_headers, preflight_headers
from codespec.http.dialects.base import (
    Dialect,
    Json,
    PlainText,
    Question,
    Route,
    Tells,
    Writes,
)
from codespec.http.dialects.registry import APIS, paths_beside, route_of
from codespec.http.exchange import HttpReply, Scope, Send, origin_form
from codespec.http.field_error import FieldError
from codespec.http.front_metrics import FrontMetrics, first_token_s
from codespec.http.inbound import BodiesUnderWay, Receive, RequestBody, left
from codespec.http.openapi import document
from codespec.http.served_request import ServedRequest
from codespec.http.vocabularies import Vocabularies, Vocabulary
from codespec.http.wrong_keys import WrongKeys
from codespec.models.resolve import name_in
from codespec.requests import Completion, CompletionRequest, OnProgress, Progress
from codespec.suggest.until import Until
from codespec.system.log_privacy import outline
from codespec.types import Trace

log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")

MAX_WAITING = limits.HTTP_WAITING
MAX_WAITING_OF_ONE = limits.HTTP_WAITING_OF_ONE
_LONG_BODY = 1 << 15
_ANSWER_S = 300.0
_SEND_S = 30.0
_FAREWELL_S = 1.0


class HttpFront:
    """The ASGI application. Use it on one event loop."""

    def __init__(
        self, settings: Settings, access: Access, access_log: AccessLog | None = None
    ) -> None:
        self._access = access
        self._access_log = access_log
        self._metrics = FrontMetrics()
        self._daemon = CurrentClient(settings)
        self._waiting = Counter[str]()  # by key
        self._under_way = BodiesUnderWay(has_keys=len(access.keys) > 1)
        self._wrong_keys = WrongKeys()
        self._vocabularies = Vocabularies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = origin_form(scope)
        api, route, rest = route_of(scope["path"])
        headers = dict[bytes, bytes](scope["headers"])
        body = RequestBody(headers, receive)
        served = ServedRequest.of(api, route, scope["method"], headers)
        reply = HttpReply(send, api, body, served)
        try:
            await self._lead(route, rest, scope, receive, body, reply)
        except Refused as e:
            if isinstance(e, KeyRefused):
                self._wrong_keys.note(was_shown=e.was_shown)
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
        finally:
            self._metrics.request(served, writes=isinstance(route, Writes))
            if self._access_log is not None:
                self._access_log.write(served)

    async def _lead(
        self,
        route: Route | None,
        rest: str,
        scope: Scope,
        receive: Receive,
        body: RequestBody,
        reply: HttpReply,
    ) -> None:
        """Lead a request to the route's answer. rest: of the path, after the route's."""
        headers = dict[bytes, bytes](scope["headers"])
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # The end of the body would be another one for a proxy: RFC 9112, 6.1.
            why = "a request has Content-Length or Transfer-Encoding, not both"
            raise Refused(400, why, Connection="close")
        if headers.get(b"content-encoding", b"").lower() not in (b"", b"identity"):
            why = "a body is read as it is; send it without Content-Encoding"
            raise Refused(415, why, Accept_Encoding="identity")
        origins = self.settings.http.cors_origins if self._access.keys else ()
        if scope["method"] == "OPTIONS" and (allowed := preflight_headers(headers, origins)):
            await reply.nothing(allowed)
            return
        is_public = isinstance(route, Tells) and route.is_public
        key = self._access.check(headers, is_public=is_public)
        reply.served.is_known = key is not None
        if key:
            reply.served.key = self._access.name_of(key)
            reply.headers |= allowed_headers(headers, origins)
        if route is None:
            raise Refused(404, f"only {', '.join(paths_beside(scope['path']))}")
        is_get = isinstance(route, Tells) and route.method == "GET"
        methods = ("GET", "HEAD") if is_get else ("POST",)
        if scope["method"] not in methods:
            raise Refused(405, f"only {methods[0]}", Allow=", ".join(methods))
        if isinstance(route, Tells) and is_get:
            accept = headers.get(b"accept", b"").decode("latin-1")
            asked = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), True))
            question = Question(
                self, rest=rest, is_known=key is not None, accept=accept, asked=asked
            )
            await reply.told(await route.answer(question))
            return
        assert key is not None  # nothing that takes a body is public
        self._check_room(key)  # before the body is taken in
        with self._under_way.share(key) as take:
            raw = await body.read(take)
            if raw is None:
                return
            if isinstance(route, Tells):
                with self._admitted(key):
                    await reply.told(await route.answer(Question(self, raw, rest)))
                return
            is_long = len(raw) > _LONG_BODY
            dialect = await _aside(is_long, route.read, raw, self.daemon.model)
            del raw
        with self._admitted(key):
            try:
                await self._write(dialect, is_long, receive, reply)
            except (Refused, CodespecError) as e:
                if (events := dialect.instead_of_error(str(e))) is None:
                    raise
                await reply.end(events)

    def _check_room(self, key: str) -> None:
        """Raises: Refused if too many requests wait."""
        if self._waiting.total() >= MAX_WAITING:
            raise Refused(503, "too many requests are waiting", Retry_After="1")
        if len(self._access.keys) > 1 and self._waiting[key] >= MAX_WAITING_OF_ONE:
            raise Refused(429, "too many requests of this key are waiting", Retry_After="1")

    @contextmanager
    def _admitted(self, key: str) -> Generator[None]:
        """Count a request as waiting while it is answered. Raises: Refused if too many wait."""
        self._check_room(key)
        self._waiting[key] += 1
        try:
            yield
        finally:
            self._waiting[key] -= 1

    @property
    def settings(self) -> Settings:
        return self._daemon.settings

    @property
    def daemon(self) -> wire.StateChanged:
        return self._daemon.state

    @property
    def is_busy(self) -> bool:
        return self._waiting.total() > 0

    async def of_vocabulary(self, question: Callable[[Vocabulary], _T]) -> _T:
        """The answer to a question about the vocabulary of the model that completes."""
        self.check_ready()
        return await self._vocabularies.ask(self.settings.model, question)

    def check_ready(self, *, is_known: bool = True) -> str:
        """A warning for whoever runs the server. Raises: Refused while no model is ready."""
        self._daemon.connect()
        state, warning = self.daemon, self._daemon.why_outdated
        if state.state == "ready":
            return warning if is_known else ""
        if not is_known:  # a reason names files, too
            raise Refused(503, state.state)
        why = ": ".join(filter(None, (state.state, state.reason)))
        raise Refused(503, "\n  ".join(filter(None, (why, state.hint, warning))))

    def models(self) -> list[str]:
        """The model that completes, and the next-edit model where there is one."""
        self.check_ready()
        names = [self.daemon.model]
        if where := self.settings.edits.model:
            names.append(name_in(where))
        return names

    async def _write(
        self, dialect: Dialect, is_long: bool, receive: Receive, reply: HttpReply
    ) -> None:
        answering = asyncio.create_task(self._answer(dialect, is_long, reply))
        leaving = asyncio.create_task(left(receive))
        both = {answering, leaving}
        try:
            # Longer than an answer may take: a client that does not read it is disconnected.
            limit_s = _ANSWER_S + _SEND_S
            await asyncio.wait(both, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_answered = answering.done()
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        if is_answered:
            answering.result()

    async def _answer(self, dialect: Dialect, is_long: bool, reply: HttpReply) -> None:
        place = self._access.hinted if dialect.path_is_hint else self._access.place
        workspace, path = place(dialect.document)
        reply.served.workspace = self._access.number_of(workspace)
        with self._daemon.client() as client:
            defaults = self.settings.completion
            requests = [
                replace(
                    request,
                    workspace=workspace,
                    path=path,
                    deadline_ms=_ANSWER_S * 1e3,
                    lends=False,  # what one client sent is shown to no other
                )
                for request in await _aside(is_long, dialect.requests, defaults)
            ]
            for warning in dialect.warnings:
                log.warning("%s", warning)
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
                completions = await self._in_turn(client, requests, reply.served)
                await reply.json(200, dialect.answer(completions))

    async def _stream(
        self, client: AsyncClient, dialect: Dialect, request: CompletionRequest, reply: HttpReply
    ) -> None:
        until = Until(request.stop, request.min_indent)
        news, said, n_sent = asyncio.Event(), "", 0

        def hear(progress: Progress) -> None:
            nonlocal said
            said = progress.text
            news.set()

        asking = asyncio.create_task(self._ask(client, request, reply.served, hear))
        asking.add_done_callback(lambda _: news.set())
        try:
            while True:
                await news.wait()
                news.clear()
                if asking.done():
                    break
                # An editor's suggestion is known at the end only.
                text = until.settled(said) if request.verbatim else ""
                if len(text) > n_sent:
                    await reply.event(dialect.part(text[n_sent:]))
                    n_sent = len(text)
            completion = asking.result()
            await reply.end(dialect.end(completion.text[n_sent:], completion))
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _in_turn(
        self, client: AsyncClient, requests: Sequence[CompletionRequest], served: ServedRequest
    ) -> list[Completion]:
        """Answers of several requests, one after the other, within the deadline of one."""
        loop, completions = asyncio.get_running_loop(), list[Completion]()
        ends_s = loop.time() + _ANSWER_S
        for request in requests:
            left_ms = max(1.0, (ends_s - loop.time()) * 1e3)
            asked = replace(request, deadline_ms=left_ms)
            completions.append(await self._ask(client, asked, served))
        return completions

    async def _ask(
        self,
        client: AsyncClient,
        request: CompletionRequest,
        served: ServedRequest,
        hear: OnProgress | None = None,
    ) -> Completion:
        """The completion, if a model made it in time; its figures are counted, also where the
        client left. Raises: Refused."""
        asked_s = time.monotonic()
        left: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()

        def hear_left(completion: Completion) -> None:
            if not left.done():
                left.set_result(completion)

        try:
            completion = await client.ask(request, hear, on_left=hear_left)
        except asyncio.CancelledError:  # the client left: what was written for it counts
            with suppress(asyncio.TimeoutError):
                made = await asyncio.wait_for(left, _FAREWELL_S)
                self._count(made.trace, asked_s, served)
            raise
        self._count(completion.trace, asked_s, served)
        return _made(completion)

    def _count(self, trace: Trace, asked_s: float, served: ServedRequest) -> None:
        """Count a text, if a model made one. asked_s: when it was asked for."""
        if trace.model:
            waited_s = time.monotonic() - asked_s - trace.ms / 1e3
            self._metrics.text(trace, waited_s)
            served.n_read += trace.n_prompt_tokens
            served.n_written += trace.n_tokens
            if served.first_ms is None and trace.n_tokens:
                first_s = asked_s - served.began_s + first_token_s(trace, waited_s)
                served.first_ms = first_s * 1e3

    async def metrics(self, accept: str) -> PlainText:
        return PlainText(*self._metrics.shown(accept, await self._daemon.status()))

    @property
    def workspace_names(self) -> list[str]:
        """Names by which requests may name workspaces."""
        return list(self._access.by_name)

    @property
    def description(self) -> Json:
        """The description of all routes, as OpenAPI."""
        return _description()

    def start(self) -> None:
        """Begin to start or join the daemon."""
        self._daemon.connect()

    async def close(self) -> None:
        """Close the connections to the daemon, which goes on."""
        self._vocabularies.close()
        await self._daemon.close()


@cache
def _description() -> Json:
    return document(APIS)


async def _aside(is_long: bool, read: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Read a body: beside the event loop if it is long, as that takes up to seconds."""
    return await asyncio.to_thread(read, *args, **kwargs) if is_long else read(*args, **kwargs)


def _made(completion: Completion) -> Completion:
    """The completion, if a model made it in time. Raises: Refused."""
    is_late = completion.finish in ("deadline", "cancelled")
    if not completion.text and (is_late or not completion.trace.model):
        raise Refused(503, completion.reason, Retry_After="1")
    return completion
