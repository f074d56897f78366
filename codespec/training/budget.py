"""How long a training goes on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrainingBudget:
    """One of the two, or both: what is spent first counts."""

    minutes: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        if self.minutes is None and self.tokens is None:
            raise ValueError("give the budget in minutes or in tokens")

    def progress(self, seconds: float, tokens: int) -> float:
        """Share of it that is spent; 1 and more: all."""
        by_time = seconds / 60 / self.minutes if self.minutes else 0.0
        return max(by_time, tokens / self.tokens if self.tokens else 0.0)
