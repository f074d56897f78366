"""What this user makes of suggestions, by language and kind of place: where nearly all were passed
over, they are no longer made unasked, but for a trial now and then.

Counts only, kept with the user's own statistics on this machine. Counts beyond some hundred are
halved, so that habits can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codespec.stats import MAX_HABIT, Stats

MIN_SHOWN = 40
"""Fewer say nothing."""
MIN_ACCEPTED = 0.02
TRIAL_EVERY = 8
"""So many requests to one that is answered all the same."""


@dataclass(slots=True)
class Habit:
    """Counts are not whole once they were halved. n_refused: since the editor started."""

    n_shown: float = 0.0
    n_accepted: float = 0.0
    n_refused: int = 0

    @property
    def is_hopeless(self) -> bool:
        return self.n_shown >= MIN_SHOWN and self.n_accepted < MIN_ACCEPTED * self.n_shown

    @property
    def words(self) -> str:
        """How many were accepted, and what follows from it."""
        follows = f"one in {TRIAL_EVERY} is made" if self.is_hopeless else "they are made"
        return f"{self.n_accepted:.0f} of {self.n_shown:.0f} accepted; {follows}"


class Habits:
    """Suggestions that nobody asked for, each counted once, however it was typed along."""

    def __init__(self, stats: Stats | None) -> None:
        """stats: where counts are kept; None: they end with the session."""
        self._stats = stats
        self._habits: dict[tuple[str, str], Habit] = {}

    def learn(self, counts: Mapping[tuple[str, str], tuple[float, float]]) -> None:
        """(language, kind of place) -> (shown, accepted) of earlier sessions."""
        for key, (n_shown, n_accepted) in counts.items():
            habit = self._habits.setdefault(key, Habit())
            habit.n_shown += n_shown
            habit.n_accepted += n_accepted

    def of(self, language: str, kind: str) -> Habit:
        return self._habits.get((language or "text", kind), Habit())

    def shown(self, language: str, kind: str) -> None:
        self._count(language, kind, 1, 0)

    def accepted(self, language: str, kind: str) -> None:
        """Any part of one that was shown."""
        self._count(language, kind, 0, 1)

    def why_not(self, language: str, kind: str) -> str:
        """Why nothing is suggested here unasked, "" where it is; a request counts."""
        habit = self.of(language, kind)
        if not habit.is_hopeless:
            return ""
        habit.n_refused += 1
        if habit.n_refused % TRIAL_EVERY == 0:
            return ""
        where = f"{kind} in {language or 'text'}"
        return f"suggestions {where} were passed over: {habit.words} (completion.adaptive)"

    def _count(self, language: str, kind: str, n_shown: int, n_accepted: int) -> None:
        language = language or "text"
        habit = self._habits.setdefault((language, kind), Habit())
        habit.n_shown += n_shown
        habit.n_accepted += n_accepted
        if habit.n_shown > MAX_HABIT:
            habit.n_shown, habit.n_accepted = habit.n_shown / 2, habit.n_accepted / 2
        if self._stats is not None:
            self._stats.habit(language, kind, n_shown, n_accepted)
