"""Counters of drafts for an engine. No text, no paths."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from codespec.types import Source, SourceStats

MOST_WORKSPACES = 1024


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
    by_workspace: dict[str, dict[str, SourceStats]] = field(
        default_factory=dict[str, dict[str, SourceStats]]
    )
    """The same by id of the workspace that was drafted from; "" for none, and for those beyond
    `MOST_WORKSPACES`."""

    def add(self, counts: list[tuple[int, int]], workspace: str = "") -> None:
        """Add a request's tokens drafted and accepted, by number of source."""
        if workspace not in self.by_workspace and len(self.by_workspace) >= MOST_WORKSPACES:
            workspace = ""
        for number, (n_drafted, n_accepted) in enumerate(counts):
            if n_drafted:
                label = Source.of(number).label
                for by_source in (self.by_source, self.by_workspace.setdefault(workspace, {})):
                    stats = by_source.setdefault(label, SourceStats())
                    stats.n_drafted += n_drafted
                    stats.n_accepted += n_accepted

    def as_dict(self) -> dict[str, Any]:
        # Copies in one step each: a drafter that is late may add a source meanwhile.
        by_workspace = {name: dict(found) for name, found in list(self.by_workspace.items())}
        return asdict(replace(self, by_source=dict(self.by_source), by_workspace=by_workspace))
