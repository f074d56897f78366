"""`codespec bench compare`: is B different from A, and by how much?

Rows that measured the same thing are set side by side. Where a side has several rows for it (runs
appended to one file), medians are compared, with a bootstrap interval for their ratio (Efron 1979,
percentile method).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from .origins import told_apart
from .results import Row, figures, identity

N_RESAMPLES = 2000
_MACHINE = ("cpu", "n_cores", "gpu", "backend")
"""Fields of a machine that decide how quick it is; versions of programs are not among them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """of: what was measured, as "key value" pairs; low, high: 95 % interval of the ratio b / a,
    None where a side has fewer than three runs."""

    of: str
    figure: str
    a: float
    b: float
    n_a: int
    n_b: int
    low: float | None
    high: float | None

    @property
    def ratio(self) -> float | None:
        """b / a of the medians; None where a is 0."""
        return self.b / self.a if self.a else None

    @property
    def certain(self) -> bool:
        """True if the interval excludes equality."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def compare(a: Sequence[Row], b: Sequence[Row]) -> list[Difference]:
    """All figures that both sides have."""
    ours, theirs = map(_grouped, told_apart(a, b))
    out: list[Difference] = []
    for key, runs in ours.items():
        for figure, values in runs.items():
            others = theirs.get(key, {}).get(figure)
            if others is None:
                continue
            x, y = np.array(values), np.array(others)
            low, high = ratio_interval(x, y)
            name = " ".join(value for _, value in key)
            out.append(
                Difference(
                    name,
                    figure,
                    float(np.median(x)),
                    float(np.median(y)),
                    len(x),
                    len(y),
                    low,
                    high,
                )
            )
    return out


def ratio_interval(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], seed: int = 0
) -> tuple[float | None, float | None]:
    """95 % bootstrap interval of median(b) / median(a); (None, None) below three values a side."""
    if min(len(a), len(b)) < 3 or not np.all(a):
        return None, None
    rng = np.random.default_rng(seed)
    medians_a = np.median(rng.choice(a, (N_RESAMPLES, len(a))), axis=1)
    medians_b = np.median(rng.choice(b, (N_RESAMPLES, len(b))), axis=1)
    low, high = np.percentile(medians_b / medians_a, [2.5, 97.5])
    return float(low), float(high)


def machines_apart(a: Sequence[Row], b: Sequence[Row]) -> list[str]:
    """In what the machines of these results differ, on one side or between both, in words."""
    stamps = [row["machine"] for row in (*a, *b) if "machine" in row]
    said = ((key, dict.fromkeys(str(s.get(key, "none")) for s in stamps)) for key in _MACHINE)
    return [f"{key}: {', '.join(values)}" for key, values in said if len(values) > 1]


def _grouped(rows: Sequence[Row]) -> dict[tuple[tuple[str, str], ...], dict[str, list[float]]]:
    out: dict[tuple[tuple[str, str], ...], dict[str, list[float]]] = {}
    for row in rows:
        runs = out.setdefault(identity(row), {})
        for figure, value in figures(row).items():
            runs.setdefault(figure, []).append(value)
    return out


def print_differences(differences: Sequence[Difference]) -> None:
    table = Table("", "figure", "A", "B", "B / A", "95 %", title="medians")
    last = ""
    for d in differences:
        interval = "" if d.low is None else f"{d.low:.3f} to {d.high:.3f}"
        table.add_row(
            "" if d.of == last else d.of,
            d.figure,
            f"{d.a:,.6g}",
            f"{d.b:,.6g}",
            "" if d.ratio is None else f"{d.ratio:.3f}",
            interval or f"{min(d.n_a, d.n_b)} run{'s' * (min(d.n_a, d.n_b) > 1)}",
            style="bold" if d.certain else "",
        )
        last = d.of
    out = Console(markup=False)
    out.print(table)
    if any(d.low is None for d in differences):
        out.print("Intervals need three runs a side: repeat with --output on the same file.")
