"""Upper bounds on the messages and documents of an editor, see `codespec.limits`.

A message that is too large is read away, and a message without its text stands in its place: a
request is answered with an error, and a document whose text did not come is left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeGuard

from codespec import limits

_CHUNK = 1 << 20
_KEPT = 1 << 16
"""Bytes kept of a message's beginning, and of its end: its method, id and document stand there."""
_NAMES = {
    name: re.compile(rb'"%s"\s*:\s*("(?:[^"\\]|\\.)*"|\d{1,16}\b)' % name.encode())
    for name in ("method", "uri", "id")
}
# Quotes are escaped within a text in JSON, so none of these patterns matches inside one.

SKIPPED = "codespec/skipped"
"""Method of the message in place of one whose document is unknown."""


async def read_away(n: int, read: Callable[[int], Awaitable[bytes]]) -> bytes:
    """Read a message of `n` bytes away. Returns: the message in its place, b"" at the end of
    input."""
    head = tail = b""
    while n > 0:
        chunk = await read(min(n, _CHUNK))
        if not chunk:
            return b""
        n -= len(chunk)
        head += chunk[: _KEPT - len(head)]
        tail = (tail + chunk)[-_KEPT:]
    return _remains(head, tail)


def _remains(head: bytes, tail: bytes) -> bytes:
    """The message in place of one that began with `head` and ended with `tail`."""
    found: dict[str, Any] = {}
    for name, pattern in _NAMES.items():
        match = pattern.search(head) or pattern.search(tail)
        if match is not None and len(match[1]) <= limits.URI_CHARS:
            found[name] = json.loads(match[1])
    method = str(found.get("method", ""))
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method or SKIPPED}
    if "/did" not in method:
        if "id" in found:
            message["id"] = found["id"]
        else:
            message["method"] = SKIPPED
    elif method.startswith("textDocument/") and "uri" in found:
        message["params"] = {"textDocument": {"uri": found["uri"]}, SKIPPED: True}
    else:
        message["method"] = SKIPPED
    return json.dumps(message).encode()


def why_not_kept(n_chars: int, n_lines: int, n_open: int, n_documents: int) -> str:
    """The reason to leave a document of this size alone, beside `n_documents` others of `n_open`
    characters in all; "" for none."""
    if n_chars > limits.DOCUMENT_CHARS or n_lines > limits.DOCUMENT_LINES:
        return TOO_LARGE
    if n_open + n_chars > limits.OPEN_CHARS or n_documents >= limits.DOCUMENTS:
        return TOO_MANY
    return ""


def is_integer(value: object) -> TypeGuard[int]:
    """True for a whole number in bounds."""
    return type(value) is int and abs(value) <= limits.INTEGER


def integer_of(value: object) -> int | None:
    """The whole number in bounds that a number of JSON is: 2.0 is 2 there. None for others."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if is_integer(value) else None


TOO_LARGE = (
    f"the document is too large (at most {limits.DOCUMENT_CHARS >> 20} MiB and "
    f"{limits.DOCUMENT_LINES:,} lines): it is left alone"
)
TOO_MANY = (
    f"too much is open (at most {limits.DOCUMENTS:,} documents, {limits.OPEN_CHARS >> 20} MiB "
    "together): close others, then open it again"
)


class Fields:
    """An object of JSON whose fields are attributes."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        try:
            return fields(self._values[name])
        except KeyError:
            raise AttributeError(name) from None


def fields(value: Any) -> Any:
    """An object as `Fields`; anything else as it is."""
    return Fields(value) if isinstance(value, dict) else value
