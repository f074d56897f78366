"""A request's body as it comes in, and its answer as it goes out, in the messages of ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias

import msgspec

from codespec import limits
from codespec.http.access import Refused
from codespec.http.dialects.base import Api

MAX_BODY_BYTES = limits.BODY_BYTES
_LENGTH_DIGITS = 20

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
"""Arguments that ASGI calls an application with."""


class HttpReply:
    """The answer to one request: whole, or as events, in the form of an API. headers: those that
    any answer has."""

    def __init__(self, send: Send, api: Api) -> None:
        self._send, self._api = send, api
        self._streams = False
        self.headers: dict[str, str] = {}

    async def json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        """Send a whole answer."""
        await self._whole(status, "application/json", msgspec.json.encode(value), headers or {})

    async def told(self, value: Any) -> None:
        """Send a whole answer, a string as plain text."""
        if isinstance(value, str):
            await self._whole(200, "text/plain; charset=utf-8", value.encode(), {})
        else:
            await self.json(200, value)

    async def nothing(self, headers: dict[str, str]) -> None:
        """Send an answer without a body."""
        await self._start(204, "", headers)
        await self._send({"type": "http.response.body", "body": b""})

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
        await self._send({"type": "http.response.body", "body": b""})

    async def error(
        self, status: int, message: str, field: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Send an error: as an event where events were sent before.

        field: of the request, which the error is about.
        """
        error = self._api.error(status, message, field)
        if self._streams:
            await self.end([error])
        else:
            await self.json(status, error, headers)

    async def _whole(self, status: int, kind: str, body: bytes, headers: dict[str, str]) -> None:
        await self._start(status, kind, {"Content-Length": str(len(body)), **headers})
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, kind: str, headers: dict[str, str]) -> None:
        rows = {**({"Content-Type": kind} if kind else {}), **self.headers, **headers}
        pairs = [(k.replace("_", "-").lower().encode(), v.encode()) for k, v in rows.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})


async def read_body(headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
    """The request's body; None for a client that left. Raises: Refused for a body that is too
    large."""
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


async def left(receive: Receive) -> None:
    """Return once the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
