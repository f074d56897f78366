"""Rewriting from the command line: models and curves by name, progress, the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from codespec.backends.registry import open_vocabulary
from codespec.config import Settings
from codespec.engine.local import LocalEngine

from .history import History
from .replay_report import load_curve
from .results import Row
from .rewrite import LOOKUPS, ClockRewrite, Rewrite


def run(
    repo: Path, vocabulary: Path, curves: Sequence[str], n_commits: int, glob: str, until: str
) -> list[Row]:
    """One row per configuration and curve, in the tokens of the file `vocabulary`. Raises:
    InputError, ModelError."""
    known = {name: load_curve(name) for name in curves}
    rewrite = Rewrite(repo, open_vocabulary(vocabulary).tokenizer, known, glob)
    _run(rewrite, repo, n_commits, glob, until)
    return rewrite.rows()


def run_model(repo: Path, settings: Settings, n_commits: int, glob: str, until: str) -> list[Row]:
    """One row per configuration, by the passes of the target of the settings. Raises: InputError,
    ModelError."""
    engine = LocalEngine(settings)
    try:
        engine.settle()
        rewrite = ClockRewrite(repo, engine.tokenizer, engine.target, engine.curve, glob)
        _run(rewrite, repo, n_commits, glob, until)
        of_model = {"model": engine.info.name, "backend": engine.info.backend}
        return [{**of_model, **row} for row in rewrite.rows()]
    finally:
        engine.close()


def _run(
    rewrite: Rewrite | ClockRewrite, repo: Path, n_commits: int, glob: str, until: str
) -> None:
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rewriting", total=None)
        rewrite.run(n_commits, lambda i, n: bar.update(task, completed=i, total=n), until)
    if not rewrite.n_windows:
        raise History(repo, glob).nothing()


def print_rows(rows: list[Row]) -> None:
    """A table a curve: of fixed prompt lookups, the best alone."""
    for curve in dict.fromkeys(row["curve"] for row in rows):
        _print_table([row for row in rows if row["curve"] == curve])


def _print_table(rows: list[Row]) -> None:
    first = rows[0]
    best = best_lookup(rows)
    where = f"{first['model']} on {first['backend']}" if "model" in first else first["curve"]
    table = Table(title=f"{first['n_windows']} windows, {first['n_tokens']} tokens, {where}")
    for column in ("", "tokens a pass", "drafted a pass", "speed-up", "of the ideal"):
        table.add_column(column, justify="right" if column else "left", no_wrap=not column)
    for row in rows:
        if row["config"] not in LOOKUPS or row is best:
            table.add_row(
                row["config"],
                f"{row['mat']:.2f}",
                f"{row['drafted_per_pass']:.2f}",
                f"{row['speedup']:.2f}",
                f"{row['share_of_ideal']:.0%}",
            )
    Console(markup=False).print(table)


def best_lookup(rows: Iterable[Row]) -> Row:
    """The fixed prompt lookup that turned out to be the quickest, of one curve's rows."""
    return max((row for row in rows if row["config"] in LOOKUPS), key=lambda row: row["speedup"])
