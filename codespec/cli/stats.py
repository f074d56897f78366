"""`codespec stats`"""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.table import Table

from codespec.cli import FiniteRange, json_option, print_json, printable
from codespec.usage import statistics
from codespec.usage.habits import Habit
from codespec.usage.statistics import LanguageStats, Stats
from codespec.usage.suppression import PlaceKind


@click.command()
@click.option("--days", type=FiniteRange(0, min_open=True), help="Only of the last DAYS.")
@click.option("--delete", "delete_all", is_flag=True, help="Delete them all.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@json_option
def command(days: float | None, delete_all: bool, yes: bool, as_json: bool) -> None:
    """Show suggestions and acceptance, the share of your code they wrote, their speed, the kinds of
    places where fewer suggestions are made because you hardly ever accepted any, and next edits.

    Numbers only, without text or file names, kept on this machine and sent nowhere. `stats.enabled
    = false` in the settings stops the counting.
    """
    if delete_all:
        if not yes:
            click.confirm("Delete all statistics?", abort=True, err=True)
        deleted = statistics.delete()
        if as_json:
            print_json({"deleted": deleted})
        else:
            click.echo("deleted" if deleted else "there were none")
        return
    rows = statistics.summary(days)
    habits = {key: Habit(*counts) for key, counts in Stats().habits().items()}
    edits = Stats().next_edits()
    if as_json:
        print_json(
            {
                "path": str(statistics.default_path()),
                "languages": [_as_json(row) for row in rows],
                "habits": [_habit_as_json(*key, habit) for key, habit in habits.items()],
                "next_edits": [
                    {**msgspec.to_builtins(counts), "acceptance": counts.acceptance}
                    for counts in edits
                ],
            }
        )
    elif rows or habits or edits:
        if rows:
            _print(rows)
        for counts in edits:
            of_kind = "" if counts.kind == "all" else f" of kind {counts.kind}"
            share = f"{counts.n_accepted} accepted, {counts.acceptance:.0%}"
            click.echo(printable(f"next edits{of_kind}: {counts.n_shown} shown, {share}"))
        for (language, kind), habit in sorted(habits.items(), key=_place_of):
            click.echo(printable(f"unasked, {kind.text} in {language}: {habit.words}"))
        click.echo(f"{statistics.default_path()}, which stays on this machine; delete: --delete")
    else:
        click.echo("nothing was shown yet; statistics come from editors")


def _as_json(row: LanguageStats) -> dict[str, object]:
    values: dict[str, object] = msgspec.to_builtins(row)
    return {**values, "acceptance": row.acceptance, "written_share": row.written_share}


def _place_of(item: tuple[tuple[str, PlaceKind], Habit]) -> tuple[str, str]:
    """Language and kind of place, to sort by."""
    (language, kind), _ = item
    return language, kind.text


def _habit_as_json(language: str, kind: PlaceKind, habit: Habit) -> dict[str, object]:
    return {
        "language": language,
        "kind": kind.text,
        "kind_key": kind.value,
        "n_shown": habit.n_shown,
        "n_accepted": habit.n_accepted,
        "is_hopeless": habit.is_hopeless,
    }


def _print(rows: list[LanguageStats]) -> None:
    table = Table()
    columns = ("", "shown", "accepted", "characters", "kept", "of the code", "ms p50/p95", "cached")
    for column in columns:
        table.add_column(column, justify="right" if column else "left", overflow="fold")
    for row in rows:
        kept = row.n_retained_chars / row.n_looked_at_chars if row.n_looked_at_chars else None
        table.add_row(
            printable(row.language),
            str(row.n_shown),
            f"{row.acceptance:.0%}",
            str(row.n_accepted_chars),
            "" if kept is None else f"{kept:.0%}",
            f"{row.written_share:.0%}",
            _times(row.model_ms),
            _times(row.cached_ms),
        )
    Console(markup=False).print(table)


def _times(times: tuple[float, float] | None) -> str:
    return f"{times[0]:.0f}/{times[1]:.0f}" if times else ""
