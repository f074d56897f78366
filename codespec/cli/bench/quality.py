"""`codespec bench quality`."""

from __future__ import annotations

from pathlib import Path

import click

from codespec.cli import model_options, model_settings
from codespec.cli.bench.results import deliver, result_options
from codespec.config import load_settings


@click.command()
@click.argument(
    "repos",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@click.option(
    "--places",
    default=50,
    show_default=True,
    type=click.IntRange(1),
    help="Of each kind and language in a repository.",
)
@model_options
@result_options
def command(
    repos: tuple[Path, ...],
    places: int,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Complete places of REPOS, folders of source files, and compare with what stood there.

    Rests of lines, texts between brackets that are closed behind the cursor, and bodies of blocks
    are cut out of files that parse, the same ones each time. "repeats suffix" and "breaks" are
    shares of the suggestions shown: those that say what stands after the cursor already, and
    those that leave a file that does not parse (strict: by Python's own parser for Python).
    "truth" is what post-processing leaves of a model that writes what stood there and then goes on.
    """
    from codespec_bench import quality_report  # pyright: ignore[reportMissingImports]

    settings = load_settings(model_settings(model, draft_model))
    rows = quality_report.run(repos, settings, places)
    deliver("quality", rows, as_json, output, quality_report.print_rows)
