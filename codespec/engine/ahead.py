"""Reading a prompt before anybody asks for what follows it, in turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from codespec.backends.base import CancelledError
from codespec.engine.turns import Turns
from codespec.requests import Paused

Prompt = TypeVar("Prompt", contravariant=True)


class Reader(Protocol[Prompt]):
    """Who can read a prompt in parts."""

    @property
    def n_cached(self) -> int: ...

    def read_ahead(self, prompt: Prompt, cancelled: Callable[[], bool], /) -> None:
        """Raises: CancelledError when `cancelled` turns true; what was read by then is kept."""
        ...


def read_in_turns(
    reader: Reader[Prompt], prompt: Prompt, cancelled: Callable[[], bool], paused: Paused
) -> Turns[None]:
    """What was read is in the cache, or among the states put aside: between two turns nothing else
    is kept of it, and where that was forgotten, reading ends, as it would get nowhere."""
    n_read, n_start = -1, -1  # cached when the last turn ended, and when this one began

    def interrupted() -> bool:
        nonlocal n_start
        if n_start < 0:
            n_start = reader.n_cached
        return cancelled() or paused(reader.n_cached != n_start)

    while True:
        try:
            return reader.read_ahead(prompt, interrupted)
        except CancelledError:
            if cancelled() or reader.n_cached <= n_read:
                return None
        n_read, n_start = reader.n_cached, -1
        yield
