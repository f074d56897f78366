"""A change as something that could be done elsewhere: a pattern, the changes that made it, and the
places that it fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from codespec.documents.edit_history import LineChange
from codespec.edits.line_tokens import defined_name
from codespec.edits.searched_text import SearchedText
from codespec.edits.substitutions import MAX_CONTEXT, Substitution


@dataclass(frozen=True, slots=True)
class Making:
    """A change, or a line of one, that made a pattern.

    line: its place in the document as it is now.
    old, new: the line before and now, without indentation; "" for a change of whole lines.
    """

    change: LineChange
    line: int
    old: str = ""
    new: str = ""
    substitution: Substitution | None = None


class FittingPlace(NamedTuple):
    """A place that a pattern fits.

    line: the first line that is replaced, or the one before which lines are inserted.
    n_old: lines that are replaced. new: lines instead.
    n_left, n_right: tokens, or lines, that stand around it as around `making`, at most 9 each.
    whole: all of the line is the same.
    n_occurrences: how often the line holds what is replaced. is_one: one of them is, not all.
    """

    line: int
    n_old: int
    new: tuple[str, ...]
    making: Making
    n_left: int = 0
    n_right: int = 0
    whole: bool = False
    n_occurrences: int = 1
    is_one: bool = False


@dataclass(slots=True)
class Pattern(ABC):
    """One way in which changes may be repeated.

    removed, added: the text that goes and that comes.
    needle: a text without line ends that each place holds; "" where places are found by likeness.
    """

    kind: ClassVar[str]
    everywhere: ClassVar[bool] = True
    """True if places in files that are not open are looked for, too."""
    removed: str
    added: str
    needle: str
    makings: list[Making] = field(default_factory=list[Making])

    @abstractmethod
    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        """Places of this text that the pattern fits. home: the text in which it was made last."""

    @property
    def numbers(self) -> set[int]:
        """Numbers of the changes that made it."""
        return {making.change.number for making in self.makings}

    @property
    def newest(self) -> int:
        """Number of the change that made it last."""
        return max(making.change.number for making in self.makings)


def renames_definition(pattern: Pattern) -> bool:
    """True if one of the changes that made a pattern gave another name to what a line defines."""
    old, new = pattern.removed.strip(), pattern.added.strip()
    return bool(old and new) and any(
        defined_name(making.old) == old and defined_name(making.new) == new
        for making in pattern.makings
    )


def lines_around(
    text: SearchedText, line: int, n_lines: int, home: SearchedText | None, making: Making
) -> tuple[int, int]:
    """How many lines above and below a place are the same as around the change that made the
    pattern."""
    if home is None:
        return 0, 0
    change = making.change
    above = below = 0
    end, home_end = line + n_lines, change.line + len(change.new)
    while above < MAX_CONTEXT and min(line, change.line) - 1 - above >= 0:
        if text.body(line - 1 - above) != home.body(change.line - 1 - above):
            break
        above += 1
    while (
        below < MAX_CONTEXT and end + below < len(text.lines) and home_end + below < len(home.lines)
    ):
        if text.body(end + below) != home.body(home_end + below):
            break
        below += 1
    return above, below
