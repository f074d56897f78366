"""Requests' bodies as they come in: bounded in bytes, all those under way together, and in time.

An answer that comes before the body is over, as that to a body which is too large, is sent at once,
and the rest of the body is read and dropped: a connection that is closed with bytes unread is
reset, and a client that still sends loses the answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from codespec import limits
from codespec.http.access import Refused

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
"""Waits for the next message of an ASGI server."""
Take: TypeAlias = Callable[[int], None]
"""Takes so many bytes of a share. Raises: Refused if there are not as many left."""

_PROGRESS_S = 5.0
_WHOLE_S = 120.0
_LENGTH_DIGITS = 20


class BodiesUnderWay:
    """Bytes of the bodies that are being received and read."""

    def __init__(self, has_keys: bool) -> None:
        """has_keys: there are several, and none may take it all."""
        self._most_of_one = limits.HTTP_BODIES_BYTES // (2 if has_keys else 1)
        self._n_bytes = Counter[str]()  # by key

    @contextmanager
    def share(self, key: str) -> Generator[Take]:
        """The share of one body, which is given back at the end."""
        n_taken = 0

        def take(n_bytes: int) -> None:
            nonlocal n_taken
            n_taken += n_bytes
            self._n_bytes[key] += n_bytes
            if self._n_bytes.total() > limits.HTTP_BODIES_BYTES:
                raise Refused(503, "too much text is under way", Retry_After="1")
            if self._n_bytes[key] > self._most_of_one:
                raise Refused(429, "too much text of this key is under way", Retry_After="1")

        try:
            yield take
        finally:
            self._n_bytes[key] -= n_taken
            if not self._n_bytes[key]:
                del self._n_bytes[key]


class RequestBody:
    """The body of one request. is_over: nothing of it is left to read."""

    def __init__(self, headers: dict[bytes, bytes], receive: Receive) -> None:
        self._receive = receive
        length = headers.get(b"content-length", b"0")
        self._n_told = int(length) if len(length) <= _LENGTH_DIGITS else limits.BODY_BYTES + 1
        self.is_over = not self._n_told and b"transfer-encoding" not in headers

    async def read(self, take: Take) -> bytes | None:
        """The whole body; None for a client that left. Raises: Refused for a body that is too
        large, or does not come."""
        too_large = Refused(
            413, f"a body has at most {limits.BODY_BYTES} bytes: send less text", Connection="close"
        )
        if self._n_told > limits.BODY_BYTES:
            raise too_large
        parts, n_bytes = list[bytes](), 0
        ends_s = asyncio.get_running_loop().time() + _WHOLE_S
        while True:
            part = await self._next(ends_s)
            if part is None:
                return None
            n_bytes += len(part)
            if n_bytes > limits.BODY_BYTES:
                raise too_large
            take(len(part))
            parts.append(part)
            if self.is_over:
                return b"".join(parts)

    async def drop(self) -> None:
        """Read the rest and drop it, within the limits of a body's time and of all bodies' bytes
        together."""
        n_bytes = 0
        ends_s = asyncio.get_running_loop().time() + _WHOLE_S
        with suppress(Refused):
            while not self.is_over and n_bytes <= limits.HTTP_BODIES_BYTES:
                n_bytes += len(await self._next(ends_s) or b"")

    async def _next(self, ends_s: float) -> bytes | None:
        """The next part; None for a client that left. Raises: Refused if none comes in time."""
        limit_s = min(_PROGRESS_S, ends_s - asyncio.get_running_loop().time())
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, limit_s))
        except asyncio.TimeoutError:
            self.is_over = True  # nobody waits for its rest
            raise Refused(408, "the body did not come in time", Connection="close") from None
        is_left = message["type"] == "http.disconnect"
        self.is_over = is_left or not message.get("more_body")
        return None if is_left else message.get("body", b"")


async def left(receive: Receive) -> None:
    """Return once the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
