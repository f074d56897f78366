"""`codespec bench gate`: have the figures that do not depend on the machine become worse?

Only figures that come out equal on every machine are looked at: counts of tokens and passes, sizes.
Times never are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .results import Row, identity

BETTER_IS_MORE = {"mat": True, "accepted": True, "bytes_per_token": False, "n_passes": False}
"""The figures of the gate."""

DRAFTED = "n_drafted"
"""More of it is worse only where no more was accepted."""


@dataclass(frozen=True, slots=True)
class Regression:
    """now is None where the result is missing."""

    of: str
    figure: str
    before: float
    now: float | None


def gated(rows: Sequence[Row]) -> list[Row]:
    """What a baseline keeps of results: what was measured, and the figures of the gate."""
    return [
        {k: row[k] for k in (*dict(_key(row)), *BETTER_IS_MORE, DRAFTED) if k in row}
        for row in rows
        if any(k in row for k in BETTER_IS_MORE)
    ]


def regressions(
    baseline: Sequence[Row], results: Sequence[Row], tolerance: float
) -> list[Regression]:
    """Figures that are worse than the baseline's by more than the share `tolerance`."""
    now = {_key(row): row for row in gated(results)}
    out: list[Regression] = []
    for row in baseline:
        key = _key(row)
        found = now.get(key, {})
        for figure, more in BETTER_IS_MORE.items():
            if figure not in row:
                continue
            before, value = float(row[figure]), found.get(figure)
            slack = tolerance * abs(before)
            if value is None or (value < before - slack if more else value > before + slack):
                out.append(Regression(_name(key), figure, before, value))
        if DRAFTED in row and DRAFTED in found:
            before, value = float(row[DRAFTED]), float(found[DRAFTED])
            gained = float(found.get("accepted", 0)) > float(row.get("accepted", 0))
            if value > before * (1 + tolerance) and not gained:
                out.append(Regression(_name(key), DRAFTED, before, value))
    return out


def _key(row: Row) -> tuple[tuple[str, str], ...]:
    """What was measured. A clone may have any name."""
    return tuple(word for word in identity(row) if word[0] != "repository")


def _name(key: tuple[tuple[str, str], ...]) -> str:
    return " ".join(text for _, text in key)
