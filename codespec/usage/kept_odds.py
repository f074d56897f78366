"""Calibration of `completion.eagerness` by this user: outcomes of suggestions against the
probability that was said of them, by language and kind of place.

Nothing is counted while no probability is computed. As with habits, counts beyond some hundred are
halved, and a suggestion counts once: as kept if any part of it was accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from codespec.requests import Eagerness
from codespec.usage.statistics import MAX_HABIT, Stats
from codespec.usage.suppression import PlaceKind

Level: TypeAlias = Literal["high", "medium", "low"]
"""The values of `completion.eagerness`."""

BARS: dict[Level, float] = {"low": 0.2, "medium": 0.08}
"""Least probability of a line that is suggested."""
WEIGHT = 30.0
"""Suggestions as said that are added to what was counted: so many outcomes tell as much."""
MOST_SHIFT = 1.5
"""Greatest correction, log-odds: what is kept off hardly ever comes to be shown and counted, so its
correction must leave some way back."""


@dataclass(slots=True)
class Outcomes:
    """Counts of one language and kind of place. said: the sum of the probabilities."""

    n_shown: float = 0.0
    said: float = 0.0
    n_kept: float = 0.0

    @property
    def shift(self) -> float:
        """Log-odds of what was kept less those of what was said, drawn to 0 while it is little."""
        if not self.n_shown:
            return 0.0
        said = min(max(self.said / self.n_shown, 0.01), 0.99)
        kept = (self.n_kept + WEIGHT * said) / (self.n_shown + WEIGHT)
        shift = math.log(kept / (1.0 - kept)) - math.log(said / (1.0 - said))
        return max(-MOST_SHIFT, min(MOST_SHIFT, shift))


class KeptOdds:
    """Outcomes of unasked suggestions whose probability was computed."""

    def __init__(self, stats: Stats | None) -> None:
        """stats: where counts are kept; None: they end with the session."""
        self._stats = stats
        self._outcomes: dict[tuple[str, PlaceKind], Outcomes] = {}

    def learn(self, counts: Mapping[tuple[str, PlaceKind], tuple[float, float, float]]) -> None:
        """Add counts of earlier sessions: (language, kind of place) -> (shown, said, kept)."""
        for key, (n_shown, said, n_kept) in counts.items():
            self._add(key, n_shown, said, n_kept)

    def eagerness(self, level: Level, language: str, kind: PlaceKind) -> Eagerness | None:
        """The bar at such a place, and this user's corrections; None where all is suggested."""
        if level not in BARS:
            return None
        language = language or "text"
        here, below = (self._outcomes.get((language, k)) for k in (kind, PlaceKind.BELOW))
        return Eagerness(BARS[level], _shift(here), _shift(below))

    def shown(self, language: str, kind: PlaceKind, chance: float) -> None:
        """Count a shown suggestion that was said to be kept with this probability."""
        self._count(language, kind, 1, chance, 0)

    def accepted(self, language: str, kind: PlaceKind) -> None:
        """Count a shown suggestion of which any part was accepted."""
        self._count(language, kind, 0, 0.0, 1)

    def _count(
        self, language: str, kind: PlaceKind, n_shown: int, said: float, n_kept: int
    ) -> None:
        language = language or "text"
        counted = self._add((language, kind), n_shown, said, n_kept)
        if counted.n_shown > MAX_HABIT:
            counted.n_shown, counted.said = counted.n_shown / 2, counted.said / 2
            counted.n_kept /= 2
        if self._stats is not None:
            self._stats.outcome(language, kind, n_shown, said, n_kept)

    def _add(
        self, key: tuple[str, PlaceKind], n_shown: float, said: float, n_kept: float
    ) -> Outcomes:
        counted = self._outcomes.setdefault(key, Outcomes())
        counted.n_shown += n_shown
        counted.said += said
        counted.n_kept += n_kept
        return counted


def _shift(counted: Outcomes | None) -> float:
    return 0.0 if counted is None else counted.shift
