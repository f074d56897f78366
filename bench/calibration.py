"""Are the probabilities right? Reliability of what the planner predicted, by source, against a
table of match lengths."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from codespec.drafters.lookup import LookupDrafter
from codespec.native import MAX_DEPTH, Planner
from codespec.types import Context, Draft, Source, Tokens, Verdict

N_BINS = 20

Counts = npt.NDArray[np.float64]


def _source_bins() -> Counts:
    return np.zeros((Source.count(), N_BINS))


@dataclass
class Calibration:
    """Every token that was weighed, drafted or not, and whose place the text reached.

    n, predicted, accepted: (sources, bins of predicted probability).
    by_length: (match lengths, 2): rejected and accepted.
    """

    log_loss: float = 0.0
    n: Counts = field(default_factory=_source_bins)
    predicted: Counts = field(default_factory=_source_bins)
    accepted: Counts = field(default_factory=_source_bins)
    by_length: Counts = field(default_factory=lambda: np.zeros((MAX_DEPTH + 1, 2)))

    def add(self, planner: Planner) -> None:
        sources, lengths, probs, accepted, _ = planner.outcomes()
        right = accepted.astype(np.bool_)
        self.log_loss -= float(np.log(np.where(right, probs, 1 - probs)).sum())
        bins = np.minimum((probs * N_BINS).astype(np.intp), N_BINS - 1)
        np.add.at(self.n, (sources, bins), 1)
        np.add.at(self.predicted, (sources, bins), probs)
        np.add.at(self.accepted, (sources, bins), right)
        np.add.at(self.by_length, (np.minimum(lengths, MAX_DEPTH), accepted), 1)

    def report(self) -> dict[str, object]:
        """log_loss: nats a token. log_loss_table: of the best table of match lengths there is for
        these very tokens. ece: expected calibration error by source; ece_by_chance: what it would
        be, in the mean, were each prediction right: few tokens differ from any probability.
        reliability: by source, [how many, predicted, accepted] for each twentieth of predicted
        probability."""
        total = max(float(self.n.sum()), 1.0)
        gap = np.abs(self.predicted - self.accepted).sum(axis=1)
        n_source = self.n.sum(axis=1)
        # Of a sum of independent outcomes, about normal: sqrt(2 / pi) of its standard deviation.
        variance = self.predicted * (1 - self.predicted / np.maximum(self.n, 1))
        by_chance = np.sqrt(2 / np.pi * variance).sum(axis=1)
        seen = [s for s in Source.all() if n_source[s]]
        return {
            "log_loss": self.log_loss / total,
            "log_loss_table": self._table_loss() / total,
            "ece": {s.label: float(gap[s] / n_source[s]) for s in seen},
            "ece_by_chance": {s.label: float(by_chance[s] / n_source[s]) for s in seen},
            "reliability": {s.label: self._curve(s) for s in seen},
        }

    def _curve(self, source: Source) -> list[list[float]]:
        n = self.n[source]
        return [
            [int(n[b]), self.predicted[source, b] / n[b], self.accepted[source, b] / n[b]]
            for b in np.flatnonzero(n)
        ]

    def _table_loss(self) -> float:
        total = self.by_length.sum(axis=1, keepdims=True)
        share = self.by_length / np.maximum(total, 1)
        return -float((self.by_length * np.log(np.where(share > 0, share, 1))).sum())


class Watched(LookupDrafter):
    """A lookup drafter that tells what became of its predictions."""

    calibration: Calibration | None = None

    def begin(self, context: Context) -> None:
        super().begin(context)
        self._weighing = self._open_planner(context.workspace)

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        is_planned = self._is_planned
        super().observe(emitted, draft, verdict)
        if is_planned and self.calibration is not None:
            self.calibration.add(self._weighing)
