"""Counters of drafts for an engine. No text, no paths."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from codespec.types import Source, SourceStats


@dataclass(slots=True)
class RowCounters:
    """Totals since the start.

    n_steps, n_rows: of the engine, those without drafts included. n_begun: requests.
    n_late: steps that went on without their drafts. n_left_out: steps at which nobody was asked,
        as the drafter was still busy with an earlier one, or rested after it had been late.
    n_failed: steps, and rows, whose drafter raised. n_refused: rows whose draft was not sound.
    n_cut: rows that were not drafted for, as the time for the step was over.
    ms, most_ms: time that the engine waited, in all and at most.
    begin_ms: part of it in which requests began.
    """

    n_steps: int = 0
    n_rows: int = 0
    n_begun: int = 0
    n_late: int = 0
    n_left_out: int = 0
    n_failed: int = 0
    n_refused: int = 0
    n_cut: int = 0
    n_drafted: int = 0
    ms: float = 0.0
    most_ms: float = 0.0
    begin_ms: float = 0.0
    by_source: dict[str, SourceStats] = field(default_factory=dict[str, SourceStats])

    def add(self, counts: list[tuple[int, int]]) -> None:
        """Add a request's tokens drafted and accepted, by number of source."""
        for number, (n_drafted, n_accepted) in enumerate(counts):
            if n_drafted:
                stats = self.by_source.setdefault(Source.of(number).label, SourceStats())
                stats.n_drafted += n_drafted
                stats.n_accepted += n_accepted

    def as_dict(self) -> dict[str, Any]:
        # A copy in one step: a drafter that is late may add a source meanwhile.
        return asdict(replace(self, by_source=dict(self.by_source)))
