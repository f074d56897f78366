"""Whole lines that changed: the same lines elsewhere, and lines added beside the same line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from codespec.edits.line_tokens import common_indentation, dedented, indentation, indented
from codespec.edits.pattern import FittingPlace, Pattern, lines_around
from codespec.edits.searched_text import SearchedText


class BlockPattern(Pattern):
    """Lines replaced or deleted that stand elsewhere, too, with any indentation."""

    kind: ClassVar[str] = "block"

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old, self._new = dedented(old), dedented(new)
        self._longest = max(range(len(self._old)), key=lambda i: len(self._old[i]))
        needle = self._old[self._longest].strip()
        super().__init__("\n".join(self._old), "\n".join(self._new), needle)

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        n_lines = len(self._old)
        for number in text.find(self.needle):
            first = number - self._longest
            there = text.lines[first : first + n_lines] if first >= 0 else []
            if len(there) < n_lines or dedented(there) != self._old:
                continue
            making = self.makings[-1]
            n_left, n_right = lines_around(text, first, n_lines, home, making)
            prefix = shared_indentation(there)
            yield FittingPlace(first, n_lines, indented(self._new, prefix), making, n_left, n_right)


class AddedLines(Pattern):
    """Lines added beside a line that stands elsewhere, too.

    is_above: the line stands above those that were added, not below.
    """

    kind: ClassVar[str] = "add_lines"

    def __init__(self, anchor: str, is_above: bool, new: Sequence[str]) -> None:
        self._new = dedented(new)
        self._is_above = is_above
        self._n_deeper = common_indentation(new) - len(indentation(anchor))
        self._prefix = shared_indentation(new)
        super().__init__("", "\n".join(self._new), anchor.strip())

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        n_new = len(self._new)
        for number in text.find(self.needle):
            line = text.lines[number]
            if line.strip() != self.needle:
                continue
            at = number + 1 if self._is_above else number
            new = indented(self._new, deeper(indentation(line), self._n_deeper, self._prefix))
            there = tuple(text.lines[at : at + n_new]), tuple(text.lines[max(0, at - n_new) : at])
            if new in there:
                continue
            making = self.makings[-1]
            n_left, n_right = lines_around(text, at, 0, home, making)
            yield FittingPlace(at, 0, new, making, n_left, n_right)


def shared_indentation(lines: Sequence[str]) -> str:
    """The white space that all lines begin with, but blank ones."""
    n_shared = common_indentation(lines)
    return next((line[:n_shared] for line in lines if line.strip()), "")


def deeper(prefix: str, n_deeper: int, example: str) -> str:
    """An indentation that is so many characters deeper. example: one of the same kind, which tells
    tabs from spaces."""
    if n_deeper <= 0:
        return prefix[: len(prefix) + n_deeper]
    return prefix + (example or prefix or " ")[-1] * n_deeper
