"""Whole lines that changed: the same lines elsewhere, and lines added beside the same line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from codespec.edits.indentation_steps import (
    AS_THEY_ARE,
    StepsInstead,
    steps_instead,
    usual_step,
)
from codespec.edits.line_tokens import common_indentation, dedented, indentation, indented
from codespec.edits.pattern import FittingPlace, Making, Pattern, lines_around
from codespec.edits.searched_text import SearchedText


class BlockPattern(Pattern):
    """Lines replaced or deleted that stand elsewhere, too, with any indentation."""

    kind: ClassVar[str] = "block"

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old, self._new = dedented(old), dedented(new)
        self._longest = max(range(len(self._old)), key=lambda i: len(self._old[i]))
        self._is_deepened = _has_depth(self._new) and not _has_depth(self._old)
        needle = self._old[self._longest].strip()
        super().__init__("\n".join(self._old), "\n".join(self._new), needle)

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        n_lines, making = len(self._old), self.makings[-1]
        step = _step(home, making, self._is_deepened)
        for number in text.find(self.needle):
            first = number - self._longest
            there = text.lines[first : first + n_lines] if first >= 0 else []
            if len(there) < n_lines or dedented(there) != self._old:
                continue
            n_left, n_right = lines_around(text, first, n_lines, home, making)
            new = steps_instead(step, text, first).in_lines(self._new)
            new = indented(new, shared_indentation(there))
            yield FittingPlace(first, n_lines, new, making, n_left, n_right)


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
        self._has_depth = bool(self._n_deeper) or _has_depth(self._new)
        super().__init__("", "\n".join(self._new), anchor.strip())

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        n_new, making = len(self._new), self.makings[-1]
        step = _step(home, making, self._has_depth)
        for number in text.find(self.needle):
            line = text.lines[number]
            if line.strip() != self.needle:
                continue
            at = number + 1 if self._is_above else number
            steps = steps_instead(step, text, number)
            prefix = deeper(indentation(line), self._n_deeper, self._prefix, steps)
            new = indented(steps.in_lines(self._new), prefix)
            there = tuple(text.lines[at : at + n_new]), tuple(text.lines[max(0, at - n_new) : at])
            if new in there:
                continue
            n_left, n_right = lines_around(text, at, 0, home, making)
            yield FittingPlace(at, 0, new, making, n_left, n_right)


def shared_indentation(lines: Sequence[str]) -> str:
    """The white space that all lines begin with, but blank ones."""
    n_shared = common_indentation(lines)
    return next((line[:n_shared] for line in lines if line.strip()), "")


def deeper(prefix: str, n_deeper: int, example: str, steps: StepsInstead = AS_THEY_ARE) -> str:
    """An indentation that is so many characters deeper, before `steps` take their place. example:
    one of the same kind, which tells tabs from spaces."""
    depth = steps.of((example or prefix or " ")[-1] * abs(n_deeper))
    return prefix + depth if n_deeper > 0 else prefix[: max(0, len(prefix) - len(depth))]


def _has_depth(lines: Sequence[str]) -> bool:
    return any(line[:1].isspace() for line in lines)


def _step(home: SearchedText | None, making: Making, has_depth: bool) -> str:
    """The step of lines where a change was made; "" where it does not matter."""
    return usual_step(home, making.line) if has_depth and home is not None else ""
