"""Work in turns: it can be left off, for others to take their turn, and resumed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Protocol, TypeAlias, TypeVar, cast

from codespec.backends.base import CancelledError
from codespec.requests import Paused

T = TypeVar("T")
Prompt = TypeVar("Prompt", contravariant=True)

Turns: TypeAlias = Generator[None, None, T]
"""Work that yields where others may take their turn, and returns a `T`."""


def in_one_turn(work: Turns[T]) -> T:
    """The result of work that nobody interrupts."""
    try:
        next(work)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("nobody asked it to yield")


class Reader(Protocol[Prompt]):
    """A model that can read a prompt in parts."""

    @property
    def n_cached(self) -> int: ...

    def read_ahead(self, prompt: Prompt, cancelled: Callable[[], bool], /) -> None:
        """Raises: CancelledError when `cancelled` turns true; the part read by then is kept."""
        ...


def read_in_turns(
    reader: Reader[Prompt], prompt: Prompt, cancelled: Callable[[], bool], paused: Paused
) -> Turns[None]:
    """Prefetch a prompt: prefill it before a request waits for it.

    The part read so far is in the KV cache, or among the states put aside; nothing else is kept of
    it between two turns. Where that part was forgotten meanwhile, reading ends, as it would get
    nowhere.
    """
    n_read, n_start = -1, -1  # cached tokens: at the last turn's end, this one's beginning

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
