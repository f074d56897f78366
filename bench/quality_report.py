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
from .answers import places_of
from .places import CLOSERS, FINISHED, KINDS, LAYOUT, LITERALS, TEXTS, places_in

ASKED = (*KINDS, FINISHED, "words", *LITERALS, *CLOSERS, *LAYOUT)
CONFIGS = ("file", "+symbols", "+buffers", "+edits", "all")


def run(
    repos: Sequence[Path],
    settings: Settings,
    n: int,
    only: Sequence[str] = (),
    kinds: Sequence[str] = (),
    base: Sequence[dict[str, Any]] = (),
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(rows as of `quality.run`, its answers as rows). only: these of CONFIGS. kinds: these of
    ASKED. base: answers of another version, at whose places is asked instead of others in `repos`.

    Raises: InputError, ModelError.
    """
    asked = tuple(kind for kind in ASKED if not kinds or kind in kinds)
    places = (
        places_of(base)
        if base
        else [p for repo in repos for p in places_in(repo.resolve(), n, asked, texts=TEXTS)]
    )
    configs = configs_of(settings)
    chosen = {name: configs[name] for name in CONFIGS if not only or name in only}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("completing", total=None)
        rows, answers = quality.run(
            places, chosen, lambda i, n: bar.update(task, completed=i, total=n)
        )
    return rows, [answer.as_row() for answer in answers]


def configs_of(settings: Settings) -> dict[str, Settings]:
    """The file alone, with each source of context, and with all of them."""
    nothing = {"symbols": "off", "buffers": "off", "edits": "off"}
    chosen = {
        "file": nothing,
        **{f"+{source}": {**nothing, source: "on"} for source in nothing},
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
    "wrote": "model\nalone",
    "similarity": "alike",
    "repeats": "repeats\nsuffix",
    "breaks": "breaks",
    "breaks_strict": "breaks\nstrict",
}
"""Columns of the table, by field of a row; more would not fit 80 columns."""


def print_rows(rows: list[dict[str, Any]]) -> None:
    out = Console(markup=False)
    for kind in (*ASKED, "all"):
        of_kind = [row for row in rows if row["kind"] == kind]
        if not of_kind:
            continue
        names = ("n", *_COLUMNS.values(), "ms")
        table = _table(f"{kind}: {of_kind[0]['model']}", ("config", "language"), names)
        for row in of_kind:
            figures = [
                f"{row[key]:.2f}" if key == "similarity" else f"{row[key]:.1%}" for key in _COLUMNS
            ]
            ms = "" if row["config"] == "truth" else f"{row['ms_p50']:.0f}"
            table.add_row(row["config"], row["language"], str(row["n"]), *figures, ms)
        out.print(table)
    gains = [row for row in rows if "similarity_gain" in row and row["language"] == "all"]
    if gains:
        names = ("with\ncontext", "exact", "alike")
        table = _table("gained by context, 95 % intervals", ("config", "kind"), names)
        for row in gains:
            seen = f"{row['with_context']:.0%}"
            exact, alike = _gained(row, "exact", "{:+.1%}"), _gained(row, "similarity", "{:+.3f}")
            table.add_row(row["config"], row["kind"], seen, exact, alike)
        out.print(table)


def _table(title: str, words: Sequence[str], figures: Sequence[str]) -> Table:
    """Narrow. words, figures: heads of its columns."""
    table = Table(title=title, box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for name in (*words, *figures):
        table.add_column(name, justify="left" if name in words else "right", no_wrap=True)
    return table


def _gained(row: dict[str, Any], name: str, form: str) -> str:
    ends = [row[f"{name}_gain{end}"] for end in ("", "_low", "_high") if f"{name}_gain{end}" in row]
    gain, *interval = map(form.format, ends)
    return f"{gain} ({' to '.join(interval)})" if interval else gain
