"""Trials: a document with changes, parsed for as long as there is time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from tree_sitter import Node

from codespec.syntax.trees import ParsedDocument

Late: TypeAlias = Callable[[], bool]
"""True if there is no time left."""


_T = TypeVar("_T")


def once(answer: Callable[[], _T]) -> Callable[[], _T]:
    """The same answer again without asking; made for each judge, so in a tenth of the time that
    `functools.cache` takes to be made."""
    known: list[_T] = []

    def asked() -> _T:
        if not known:
            known.append(answer())
        return known[0]

    return asked


class TooLateError(Exception):
    """There was no time to judge."""


def never() -> bool:
    return False


class Trials:
    """A parse may be one of all that follows the cursor, and a judge asks for several: so `late` is
    asked before each of them, and on its way.

    Raises: TooLateError, from `root` and `with_change`.
    """

    def __init__(self, parsed: ParsedDocument) -> None:
        self._parsed = parsed
        self.late: Late = never
        self.changed = b""
        """The text that `with_change` was asked about last."""
        self._asked: tuple[int, int, bytes] | None = None
        self._root: Node | None = None

    @property
    def root(self) -> Node | None:
        """See `ParsedDocument`."""
        return self._in_time(lambda: self._parsed.read(self.late))

    def with_change(self, start: int, end: int, new: bytes) -> Node | None:
        """See `ParsedDocument`. What was asked about last is known."""
        if self._asked != (start, end, new) or self._root is None or self.late():
            self._asked, self._root = (start, end, new), None
            self._root = self._in_time(lambda: self._parsed.with_change(start, end, new, self.late))
            if self._root is not None:
                self.changed = self._parsed.tried
        return self._root

    def _in_time(self, parse: Callable[[], Node | None]) -> Node | None:
        root = None if self.late() else parse()
        if root is None and self.late():
            raise TooLateError
        return root
