"""`codespec bench quality`."""

from __future__ import annotations

from pathlib import Path

import click

from codespec.cli import model_options, model_settings
from codespec.cli.bench.results import can_be_written, deliver, result_options
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
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(["file", "+symbols", "+buffers", "+edits", "all"]),
    help="What the model is shown; may be given again (default: each of them in turn).",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=can_be_written,
    help="Also append each place and its suggestion to a file of JSON lines; it holds source text.",
)
@model_options
@result_options
def command(
    repos: tuple[Path, ...],
    places: int,
    only: tuple[str, ...],
    answers: Path | None,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Complete places of REPOS, folders of source files, and compare with what stood there.

    Rests of lines, texts between brackets that are closed behind the cursor, and bodies of blocks
    are cut out of files that parse, the same ones each time. At ends of finished lines nothing is
    cut out: whatever is shown there is too much. "alike" is the edit similarity, 1 at most.
    "repeats suffix" and "breaks" are shares of the suggestions shown: those that say what stands
    after the cursor already, and those that leave a file that does not parse (strict: by Python's
    own parser for Python). --json and --output have more. "truth" is what post-processing leaves of
    a model that writes what stood there and then goes on; "model alone" is how often the model
    wrote just that before anything was trimmed. Gains are differences to the first configuration,
    with 95 % intervals.
    """
    from codespec_bench import quality_report, results

    settings = load_settings(model_settings(model, draft_model))
    rows, found = quality_report.run(repos, settings, places, only)
    if answers is not None:
        results.append(answers, found)
    deliver("quality", rows, as_json, output, quality_report.print_rows, repos)
