"""Acceptance of suggestions by language and kind of place: kinds whose suggestions were nearly all
dismissed are no longer suggested unasked, except for a trial now and then.

Counts only, kept with the user's own statistics on this machine. Counts beyond some hundred are
halved, so that habits can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codespec.usage.statistics import MAX_HABIT, Stats
from codespec.usage.suppression import PlaceKind

MIN_SHOWN = 40
"""Shown suggestions below which nothing is concluded."""
MIN_ACCEPTED = 0.02
TRIAL_EVERY = 8
"""One in so many suppressed requests is answered all the same."""


@dataclass(slots=True)
class Habit:
    """Counts of suggestions at one kind of place; no whole numbers once they were halved.
    n_refused: requests suppressed since the editor started."""

    n_shown: float = 0.0
    n_accepted: float = 0.0
    n_refused: int = 0

    @property
    def is_hopeless(self) -> bool:
        return self.n_shown >= MIN_SHOWN and self.n_accepted < MIN_ACCEPTED * self.n_shown

    @property
    def words(self) -> str:
        """Text for people: how many were accepted, and the consequence."""
        follows = f"one in {TRIAL_EVERY} is made" if self.is_hopeless else "they are made"
        return f"{self.n_accepted:.0f} of {self.n_shown:.0f} accepted; {follows}"


class Habits:
    """Acceptance of unasked suggestions, each counted once, however it was typed along."""

    def __init__(self, stats: Stats | None) -> None:
        """stats: where counts are kept; None: they end with the session."""
        self._stats = stats
        self._habits: dict[tuple[str, PlaceKind], Habit] = {}

    def learn(self, counts: Mapping[tuple[str, PlaceKind], tuple[float, float]]) -> None:
        """Add counts of earlier sessions: (language, kind of place) -> (shown, accepted)."""
        for key, (n_shown, n_accepted) in counts.items():
            habit = self._habits.setdefault(key, Habit())
            habit.n_shown += n_shown
            habit.n_accepted += n_accepted

    def of(self, language: str, kind: PlaceKind) -> Habit:
        return self._habits.get((language or "text", kind), Habit())

    def shown(self, language: str, kind: PlaceKind) -> None:
        self._count(language, kind, 1, 0)

    def accepted(self, language: str, kind: PlaceKind) -> None:
        """Count a shown suggestion of which any part was accepted."""
        self._count(language, kind, 0, 1)

    def why_not(self, language: str, kind: PlaceKind) -> str:
        """The reason to suppress an unasked suggestion at such a place, "" if there is none. Each
        call counts as a request."""
        habit = self.of(language, kind)
        if not habit.is_hopeless:
            return ""
        habit.n_refused += 1
        if habit.n_refused % TRIAL_EVERY == 0:
            return ""
        where = f"{kind.text} in {language or 'text'}"
        return f"suggestions {where} were passed over: {habit.words} (completion.adaptive)"

    def _count(self, language: str, kind: PlaceKind, n_shown: int, n_accepted: int) -> None:
        language = language or "text"
        habit = self._habits.setdefault((language, kind), Habit())
        habit.n_shown += n_shown
        habit.n_accepted += n_accepted
        if habit.n_shown > MAX_HABIT:
            habit.n_shown, habit.n_accepted = habit.n_shown / 2, habit.n_accepted / 2
        if self._stats is not None:
            self._stats.habit(language, kind, n_shown, n_accepted)
