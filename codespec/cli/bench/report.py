"""`codespec bench report`."""

from __future__ import annotations

from pathlib import Path

import click

from codespec.cli.bench.results import can_be_written
from codespec.errors import InputError


@click.command()
@click.argument(
    "results", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("codespec-report.html"),
    show_default=True,
    metavar="FILE",
    callback=can_be_written,
    help="The page to write.",
)
def command(results: tuple[Path, ...], output: Path) -> None:
    """Make one HTML page, with plots, of files that benchmarks wrote with --output.

    The page needs no network and no other file, follows the reader's light or dark theme, and can
    be printed.
    """
    try:
        from codespec_bench import report
    except ModuleNotFoundError as e:
        if e.name is None or not e.name.startswith("matplotlib"):
            raise
        raise InputError("matplotlib is not installed", "pip install 'codespec[report]'") from None
    from codespec_bench.results import read

    rows = [row for path in results for row in read(path)]
    if not rows:
        names = ", ".join(map(str, results))
        raise InputError(f"{names}: no results", "Give files that benchmarks wrote with --output.")
    report.write(rows, output)
    click.echo(str(output))
