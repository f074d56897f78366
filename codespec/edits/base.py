"""Inputs and outputs of the proposers of next edits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from codespec.documents.edit_history import LineChange
from codespec.edits.dismissals import AnyDismissed

__all__ = ["CursorLine", "LineChange", "LineEdit", "Proposer", "Texts"]


class Texts(Protocol):
    """The texts in which places are looked for. Line ends are \\n."""

    @property
    def open(self) -> Mapping[str, str]:
        """Text by path: open documents that may be shown and edited, the one asked about among
        them."""
        ...

    def holding(self, words: Collection[str], n_most: int) -> Iterable[tuple[str, str]]:
        """(path, text) of at most so many other files of the workspace that hold all these words,
        and may be shown and edited."""
        ...


@dataclass(frozen=True, slots=True)
class CursorLine:
    """The cursor. line: from 0."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Lines to replace. line: the first one, from 0. old: the lines that stand there, () for an
    insertion before `line`. new: what is to stand there. chance: calibrated probability, 0 to 1,
    that the user makes this edit. kind: how it was found."""

    path: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    chance: float
    kind: str


class Proposer(Protocol):
    """Proposes next edits from what was changed. One thread only."""

    def propose(
        self,
        changes: Sequence[LineChange],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Collection[AnyDismissed] = (),
    ) -> list[LineEdit]:
        """Edits of texts as they are now, likeliest first, no two that overlap. changes: oldest
        first. dismissed: those that the user did not want, anywhere or at a place."""
        ...
