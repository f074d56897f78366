"""A request's answer as it goes out, in the messages of ASGI."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias

import msgspec

from codespec.http.dialects.base import Api, PlainText
from codespec.http.inbound import RequestBody
from codespec.http.served_request import ServedRequest

Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
"""Arguments that ASGI calls an application with, beside `Receive`."""


_ABSOLUTE = re.compile(r"https?://(?P<host>[^/?#]*)(?P<path>.*)", re.DOTALL | re.IGNORECASE)


def origin_form(scope: Scope) -> Scope:
    """A request whose target names the host as clients do before a proxy, in the form of all
    others: that host counts, not the header's (RFC 9112, 3.2.2)."""
    target = _ABSOLUTE.fullmatch(scope["path"])
    if target is None:
        return scope
    others = [(name, value) for name, value in scope["headers"] if name != b"host"]
    host = (b"host", target["host"].encode())
    return {**scope, "path": target["path"] or "/", "headers": [host, *others]}


class HttpReply:
    """The answer to one request: whole, or as events, in the form of an API. headers: those that
    any answer has. served: the request, in which is noted what becomes of it."""

    def __init__(self, send: Send, api: Api, body: RequestBody, served: ServedRequest) -> None:
        """body: the request's, of which nothing is left to read when the answer ends."""
        self._send, self._api, self._body = send, api, body
        self._streams = False
        self.served = served
        self.headers = {"X-Request-Id": served.shown_id}

    async def json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        """Send a whole answer."""
        await self._whole(status, "application/json", msgspec.json.encode(value), headers or {})

    async def told(self, value: Any) -> None:
        """Send a whole answer, a string as plain text."""
        if isinstance(value, str):
            value = PlainText(value.encode())
        if isinstance(value, PlainText):
            await self._whole(200, value.media_type, value.text, {})
        else:
            await self.json(200, value)

    async def nothing(self, headers: dict[str, str]) -> None:
        """Send an answer without a body."""
        await self._start(204, "", headers)
        await self._finish()

    async def event(self, value: Any) -> None:
        """Send an event of a stream."""
        if not self._streams:
            self._streams = True
            await self._start(200, self._api.stream_type, {"Cache-Control": "no-cache"})
        data = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
        body = self._api.framed(data)
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self, events: Sequence[Any]) -> None:
        """Send the last events."""
        for event in events:
            await self.event(event)
        await self._finish()

    async def error(
        self, status: int, message: str, field: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Send an error: as an event where events were sent before.

        field: of the request, which the error is about.
        """
        error = self._api.error(status, message, field)
        if self._streams:
            self.served.has_failed = True
            await self.end([error])
        else:
            await self.json(status, error, headers)

    async def _whole(self, status: int, kind: str, body: bytes, headers: dict[str, str]) -> None:
        await self._start(status, kind, {"Content-Length": str(len(body)), **headers})
        if not self._body.is_over:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            await self._body.drop()
            body = b""
        await self._finish(body)

    async def _finish(self, body: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": body})
        self.served.is_over = True

    async def _start(self, status: int, kind: str, headers: dict[str, str]) -> None:
        self.served.status = status
        rows = {**({"Content-Type": kind} if kind else {}), **self.headers, **headers}
        pairs = [(k.replace("_", "-").lower().encode(), v.encode()) for k, v in rows.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
