"""The table of two versions at the same places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from .answers import COMPARED, is_loss


def told(gained: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `answers.gains` for people: of all languages together, of all kinds together, and
    those of single ones where something was lost."""
    return [r for r in gained if "all" in (r["language"], r["kind"]) or is_loss(r)]


def print_gains(gained: Sequence[dict[str, Any]]) -> None:
    """Per cent before and after, with the 95 % interval of the difference below, in points; losses
    are marked."""
    table = Table("", "kind", "language", "n", *COMPARED, box=None, padding=(0, 1, 0, 0))
    for row in told(gained):
        names = (row["kind"], row["language"], str(row["n"]))
        cells = [_cell(row, name) for name in COMPARED]
        table.add_row("LOSS" if is_loss(row) else "", *names, *cells)
    Console(markup=False).print(table)


def _cell(row: dict[str, Any], name: str) -> str:
    before, after = 100 * row[f"{name}_before"], 100 * row[name]
    ends = [
        100 * row[f"{name}_gain_{end}"] for end in ("low", "high") if f"{name}_gain_{end}" in row
    ]
    if not any(ends):
        return f"{after:.1f}"
    return f"{before:.1f} {after:.1f}\n{ends[0]:+.1f} {ends[1]:+.1f}"
