"""Edits that the user did not want, each at its place: lines that say the same elsewhere are other
places."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from codespec.edits.line_tokens import has_word

_MAX_CHARS = 200
"""Characters of a line that tells a place."""
DismissedEdit: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]
"""(path, old lines, new lines), wherever these stand in the document."""


class DismissedPlace(NamedTuple):
    """An edit at one place. above, below: the nearest lines with a word in them, without the white
    space around them; "" where there are none."""

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    above: str
    below: str


AnyDismissed: TypeAlias = DismissedEdit | DismissedPlace


class Dismissals:
    """Dismissed edits, to look candidates up in. A place stays the same while the line above or
    below does: the other one may be edited meanwhile."""

    def __init__(self, dismissed: Collection[AnyDismissed] = ()) -> None:
        self._everywhere = {each for each in dismissed if not isinstance(each, DismissedPlace)}
        self._places: dict[DismissedEdit, list[DismissedPlace]] = {}
        for place in dismissed:
            if isinstance(place, DismissedPlace):
                self._places.setdefault(place[:3], []).append(place)
        self._n = len(dismissed)

    def __len__(self) -> int:
        return self._n

    @property
    def edits(self) -> set[DismissedEdit]:
        """The edits, whatever their places."""
        return {*self._everywhere, *self._places}

    def has(self, edit: DismissedEdit, lines: Sequence[str], first: int) -> bool:
        """True for an edit that was dismissed where it would be made. lines: of the document.
        first: number of its first line."""
        if edit in self._everywhere:
            return True
        places = self._places.get(edit)
        if places is None:
            return False
        above, below = neighbours(lines, first, first + len(edit[1]))
        return any(place.above == above or place.below == below for place in places)


def neighbours(lines: Sequence[str], first: int, last: int) -> tuple[str, str]:
    """(above, below) of the lines first..last - 1, see `DismissedPlace`."""
    return nearest_line(reversed(lines[:first])), nearest_line(lines[last:])


def nearest_line(lines: Iterable[str]) -> str:
    """The first line with a word in it, without the white space around it, its beginning where it
    is long; "" for none."""
    return next((line.strip()[:_MAX_CHARS] for line in lines if has_word(line)), "")
