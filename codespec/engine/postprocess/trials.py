"""What a document would be with changes, for as long as there is time to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tree_sitter import Node

from codespec.index.trees import ParsedDocument

Late: TypeAlias = Callable[[], bool]
"""Whether there is no time left."""


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

    @property
    def text(self) -> bytes:
        return self._parsed.text

    @property
    def root(self) -> Node | None:
        """See `ParsedDocument`."""
        return self._in_time(lambda: self._parsed.read(self.late))

    def with_change(self, start: int, end: int, new: bytes) -> Node | None:
        """See `ParsedDocument`."""
        return self._in_time(lambda: self._parsed.with_change(start, end, new, self.late))

    def _in_time(self, parse: Callable[[], Node | None]) -> Node | None:
        root = None if self.late() else parse()
        if root is None and self.late():
            raise TooLateError
        return root
