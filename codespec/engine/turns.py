"""Work that can be left off and gone on with."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar, cast

T = TypeVar("T")

Turns: TypeAlias = Generator[None, None, T]
"""Work that yields where others may take their turn, and returns a `T`."""


def in_one_turn(work: Turns[T]) -> T:
    """The result of work that nobody interrupts."""
    try:
        next(work)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("nobody asked it to yield")
