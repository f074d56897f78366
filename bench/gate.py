"""`codespec bench gate`: have the figures that do not depend on the machine become worse?

Only figures that come out equal on every machine are looked at: counts of tokens, sizes. Times
never are, nor what a real model accepts: how much is drafted follows what passes take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from codespec.errors import InputError

from .origins import told_apart
from .results import Row, identity

BETTER_IS_MORE = {"mat": True, "accepted": True, "bytes_per_token": False}
"""The figures of the gate."""

BENCHES = frozenset({"replay", "index"})
"""Benchmarks whose figures do not depend on the clock."""

DRAFTED = "n_drafted"
"""More of it is worse only where no more was accepted."""


@dataclass(frozen=True, slots=True)
class Regression:
    """now is None where the result is missing."""

    of: str
    figure: str
    before: float
    now: float | None


def gated(rows: Sequence[Row], named: bool | None = None) -> list[Row]:
    """The part of results that a baseline keeps: what was measured, and the figures of the gate.

    named: True if rows keep repository and origin; None: where there are several to tell apart.
        Without, a clone may have any name.

    Raises: InputError where one of these is no number.
    """
    held = [r for r in rows if r.get("bench") in BENCHES and any(k in r for k in BETTER_IS_MORE)]
    figures = *BETTER_IS_MORE, DRAFTED
    for k, value in ((k, row[k]) for row in held for k in figures if k in row):
        # Nothing is less than NaN, so it would pass.
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{k}: {value!r} is no number", "Give what a benchmark wrote.")
    if named is None:
        named = len(repositories(held)) > 1
    left_out = () if named else ("repository", "origin")
    kept = *figures, "origin"
    return [
        {k: row[k] for k in (*dict(identity(row)), *kept) if k in row and k not in left_out}
        for row in held
    ]


def repositories(rows: Sequence[Row]) -> list[str]:
    (apart,) = told_apart(rows)
    return list(dict.fromkeys(row["repository"] for row in apart if "repository" in row))


def regressions(
    baseline: Sequence[Row], results: Sequence[Row], tolerance: float
) -> list[Regression]:
    """Figures that are worse than the baseline's by more than the share `tolerance`.

    Raises: InputError, as `gated`, and for results of several repositories where the baseline is
    of one.
    """
    held = gated(baseline)
    named = bool(repositories(held))
    if not named and len(several := repositories(gated(results))) > 1:
        raise InputError(
            f"the results are of several repositories ({', '.join(several)}), the baseline of one",
            "Give results of that one, or keep these as the baseline with --update.",
        )
    held, found_now = told_apart(held, gated(results, named))
    now = {identity(row): row for row in found_now}
    out: list[Regression] = []
    for row in held:
        key = identity(row)
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


def _name(key: tuple[tuple[str, str], ...]) -> str:
    return " ".join(text for _, text in key)
