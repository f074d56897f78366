"""Answers of servers, decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from codespec import limits
from codespec.backends.remote.connection import ServerAnswer, ServerClient
from codespec.backends.remote.failures import ServerError, ServerFailure, of_status

ASK_S = 3.0
"""Most seconds for what a server says of itself."""
_TELLING = (*range(300, 400), 401, 403, 407, 429)
"""Statuses other than that of a route that is not there."""
_OF_EVENTS = (b":", b"event:", b"id:", b"retry:")
"""Beginnings of the lines without data that a stream of events may have."""

_NOT_READ = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of msgspec for what is not JSON, not UTF-8, or too deep."""

T = TypeVar("T")


class _Fault(msgspec.Struct):
    error: object = None


class Inquiry:
    """Questions to a server about itself, each asked once."""

    def __init__(self, client: ServerClient, cancelled: Callable[[], bool] = lambda: False) -> None:
        """cancelled: once it returns True, AbandonedError is raised."""
        self._client = client
        self._cancelled = cancelled
        self._known: dict[tuple[str, bytes], ServerAnswer] = {}

    def ask(self, route: str, kind: type[T], body: object = None) -> T | None:
        """The answer of a route; None where the server has no such route, or answers another thing.

        Raises: ServerError where it wants a key, is out of order, or cannot be asked.
        """
        key = route, msgspec.json.encode(body)
        answer = self._known.get(key)
        if answer is None:
            limit = limits.SERVER_STREAM_BYTES
            answer = self._client.ask(
                route, body, timeout_s=ASK_S, most_bytes=limit, cancelled=self._cancelled
            )
            self._known[key] = answer
        if answer.status in _TELLING or answer.status >= 500:
            raise of_status(answer.status, answer.headers.get("retry-after", ""))
        try:
            return msgspec.json.decode(answer.body, type=kind) if answer.status == 200 else None
        except _NOT_READ:
            return None


def data_of(line: bytes) -> bytes | None:
    """The data of a line of a stream of events; None for a line without.

    Raises: ServerError for a line that such a stream does not have, or that tells of an error.
    """
    if line.startswith(b"data:"):
        return line[5:].strip()
    if line.startswith(b"error:"):
        raise ServerError(ServerFailure.BROKEN, "it tells of an error in its answer")
    if not line.startswith(_OF_EVENTS):
        raise ServerError(ServerFailure.NOT_UNDERSTOOD, "an answer of another form")
    return None


def decoded(data: bytes, kind: type[T]) -> T:
    """A piece of an answer. Raises: ServerError for another thing, or where it tells of an error,
    whose text may quote the prompt."""
    try:
        if msgspec.json.decode(data, type=_Fault).error is None:
            return msgspec.json.decode(data, type=kind)
    except _NOT_READ:
        raise ServerError(ServerFailure.NOT_UNDERSTOOD, "an answer of another form") from None
    raise ServerError(ServerFailure.BROKEN, "it tells of an error in its answer")
