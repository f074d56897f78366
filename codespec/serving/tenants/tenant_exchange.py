"""One HTTP request of ASGI: its body, read up to a bound, and whole answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class AnswerError(Exception):
    """A request that is answered with an error. status: of HTTP; fields: more of the answer."""

    def __init__(self, status: int, message: str, **fields: object) -> None:
        super().__init__(message)
        self.status, self.message, self.fields = status, message, fields


class GoneError(Exception):
    """The client left."""


class HeldBodies:
    """Bytes of the bodies of each tenant's requests that are being read or worked on.

    most_bytes: of one tenant; what is beyond is refused, so that none takes the memory of all.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held = Counter[str]()

    def hold(self, tenant: str, n_bytes: int) -> None:
        """Raises: AnswerError where that is too much."""
        if self._held[tenant] + n_bytes > self._most_bytes:
            raise AnswerError(
                429, f"requests of this tenant have {self._most_bytes:,} bytes already"
            )
        self._held[tenant] += n_bytes

    def release(self, tenant: str, n_bytes: int) -> None:
        self._held[tenant] -= n_bytes
        if not self._held[tenant]:
            del self._held[tenant]


class TenantExchange:
    """A request and the way to answer it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.hold: Callable[[int], None] = lambda n_bytes: None
        """Told the bytes of the body as they come; may raise an AnswerError."""
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method = str(scope["method"])
        self.path = str(scope["path"])

    def headers(self, name: bytes) -> list[bytes]:
        """Every header of that name, which is in small letters."""
        return [value for known, value in self.scope["headers"] if known.lower() == name]

    def header(self, name: bytes) -> bytes:
        """The header of that name; b"" for none, or several."""
        found = self.headers(name)
        return found[0] if len(found) == 1 else b""

    async def body(self, most_bytes: int) -> bytes:
        """The whole body. Raises: AnswerError for a longer one; GoneError."""
        said = self.header(b"content-length")
        if said.isdigit() and int(said) > most_bytes:
            raise AnswerError(413, f"the body has more than {most_bytes:,} bytes")
        pieces, n = list[bytes](), 0
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                raise GoneError
            piece = bytes(message.get("body", b""))
            n += len(piece)
            self.hold(len(piece))
            if n > most_bytes:
                raise AnswerError(413, f"the body has more than {most_bytes:,} bytes")
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def answer(
        self, status: int, content: object, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with JSON."""
        raw = msgspec.json.encode(content)
        named = {"content-type": "application/json", "content-length": str(len(raw))}
        pairs = [(k.encode(), v.encode()) for k, v in {**named, **(headers or {})}.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": raw})

    async def refuse(self, error: AnswerError) -> None:
        """Answer with an error, in the form of OpenAI's."""
        said = {"message": error.message, "type": "invalid_request_error", "code": error.status}
        more = {"www-authenticate": "Bearer"} if error.status == 401 else {}
        more |= {"retry-after": "1"} if error.status in (429, 503) else {}
        # What is left of a body is not read.
        more["connection"] = "close"
        await self.answer(error.status, {"error": said, **error.fields}, more)

    def with_body(self, body: bytes, keep: frozenset[bytes]) -> tuple[Scope, Receive]:
        """(scope, receive) of the same request with another body, and of its headers these alone,
        in small letters."""
        kept = [(k, v) for k, v in self.scope["headers"] if k.lower() in keep]
        scope = {**self.scope, "headers": [*kept, (b"content-length", str(len(body)).encode())]}
        sent = False

        async def receive() -> MutableMapping[str, Any]:
            nonlocal sent
            if sent:
                return await self.receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        return scope, receive
