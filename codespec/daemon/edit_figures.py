"""Figures of next edits: numbers and keys of reasons, no text."""

from __future__ import annotations

from collections import Counter

import msgspec


class EditFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of answers to questions for next edits.

    n_proposed: answers with an edit.
    n_made, n_dismissed: proposals that the user made, by accepting them or by hand, and those that
        were dismissed; of the rest nothing is known.
    why_none: number of answers without an edit by the key of their reason, see `NoNextEdit`.
    """

    n_asked: int = 0
    n_proposed: int = 0
    n_made: int = 0
    n_dismissed: int = 0
    why_none: dict[str, int] = {}

    @classmethod
    def of_answer(cls, why_none: str, *, n_made: int = 0, n_dismissed: int = 0) -> EditFigures:
        """Figures of one answer. why_none: "" for one with an edit."""
        return cls(
            n_asked=1,
            n_proposed=int(not why_none),
            n_made=n_made,
            n_dismissed=n_dismissed,
            why_none={why_none: 1} if why_none else {},
        )

    @property
    def outcomes(self) -> EditFigures:
        """The outcomes alone, without the answer."""
        return EditFigures(n_made=self.n_made, n_dismissed=self.n_dismissed)

    def __add__(self, other: EditFigures) -> EditFigures:
        return EditFigures(
            n_asked=self.n_asked + other.n_asked,
            n_proposed=self.n_proposed + other.n_proposed,
            n_made=self.n_made + other.n_made,
            n_dismissed=self.n_dismissed + other.n_dismissed,
            why_none=dict(Counter(self.why_none) + Counter(other.why_none)),
        )
