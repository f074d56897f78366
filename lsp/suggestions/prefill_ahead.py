"""Prefill before the next request: a place's prompt is read when the user comes there.

An edit in another line, a document that comes to the front and a request at an unwelcome place tell
where the user is. A line's prompt is read once: typing on in it changes only the prompt's end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

# An editor's request follows the edit sooner than this, or waits for a pause in typing.
SETTLED_S = 0.005

T = TypeVar("T")


class PrefillAhead(Generic[T]):
    """The next prefill, on one event loop. T: the request at a place."""

    def __init__(self, read: Callable[[T], None]) -> None:
        """`read`: has the prompt of a request read while the model is free."""
        self._read = read
        self._lines: dict[str, int] = {}
        self._uri = ""  # the document of `_ask_of`
        self._ask_of: Callable[[], T | None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_ready = False

    def moved(self, uri: str, line: int, ask_of: Callable[[], T | None]) -> None:
        """The user is in this line now. `ask_of`: the request there, None for none; called once the
        user stays, and the model is ready."""
        if self._lines.get(uri) == line:
            return
        self.cancel()
        self._lines[uri], self._uri, self._ask_of = line, uri, ask_of
        if self._is_ready:
            self._timer = asyncio.get_running_loop().call_later(SETTLED_S, self._send)

    def asked(self, uri: str, line: int) -> None:
        """A request has the prompt of this line read in any case."""
        self.cancel()
        self._lines[uri] = line

    def ready(self, is_ready: bool) -> None:
        """The model can read from now on, or can't. A move before it could is not lost; prompts
        that a model has read are lost when it ends."""
        if self._is_ready and not is_ready:
            self._lines.clear()
        self._is_ready = is_ready
        if is_ready and self._ask_of is not None:
            self._send()

    def forget(self, uri: str) -> None:
        """The document was closed: its prompts are not read."""
        self._lines.pop(uri, None)
        if uri == self._uri:
            self.cancel()

    def cancel(self) -> None:
        """The prefill that was not sent yet is dropped."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._ask_of = None

    def _send(self) -> None:
        ask = self._ask_of() if self._ask_of is not None else None
        self.cancel()
        if ask is not None:
            self._read(ask)
