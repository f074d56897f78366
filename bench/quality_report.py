"""`codespec bench quality` from the command line: configurations by name, progress, the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from codespec.config import ContextSettings, Settings

from . import quality
from .places import KINDS, places_in


def run(repos: Sequence[Path], settings: Settings, n: int) -> list[dict[str, Any]]:
    """Rows as of `quality.run`. Raises: InputError, ModelError."""
    places = [place for repo in repos for place in places_in(repo.resolve(), n)]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("completing", total=None)
        return quality.run(
            places, configs_of(settings), lambda i, n: bar.update(task, completed=i, total=n)
        )


def configs_of(settings: Settings) -> dict[str, Settings]:
    """The file alone, with each source of context, and with all of them."""
    nothing = {"symbols": "off", "buffers": "off", "edits": "off"}
    chosen = {
        "file": nothing,
        **{f"+ {source}": {**nothing, source: "on"} for source in nothing},
        "all": dict.fromkeys(nothing, "on"),
    }
    limit = settings.context.max_tokens
    return {
        name: msgspec.structs.replace(
            settings,
            context=msgspec.convert({**switches, "max_tokens": limit}, ContextSettings),
        )
        for name, switches in chosen.items()
    }


_COLUMNS = {
    "shown": "shown",
    "exact": "exact",
    "similarity": "similarity",
    "identifiers": "identifiers",
    "repeats": "repeats suffix",
    "breaks": "breaks",
    "breaks_strict": "breaks (strict)",
}


def print_rows(rows: list[dict[str, Any]]) -> None:
    for kind in KINDS:
        of_kind = [row for row in rows if row["kind"] == kind]
        if not of_kind:
            continue
        table = Table(title=f"{kind}: {of_kind[0]['model']}")
        for name in ("config", "language", "n", *_COLUMNS.values(), "ms"):
            table.add_column(name, justify="left" if name in ("config", "language") else "right")
        for row in of_kind:
            figures = [
                f"{row[key]:.2f}" if key == "similarity" else f"{row[key]:.1%}" for key in _COLUMNS
            ]
            ms = "" if row["config"] == "truth" else f"{row['ms_p50']:.0f}"
            table.add_row(row["config"], row["language"], str(row["n"]), *figures, ms)
        Console().print(table)
