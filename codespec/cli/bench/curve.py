"""`codespec bench curve`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from codespec.cli import model_options, model_settings
from codespec.cli.bench.results import can_be_written, deliver, result_options
from codespec.config import load_settings


@click.command()
@click.option(
    "--context",
    "n_contexts",
    multiple=True,
    type=click.IntRange(1, 100_000),
    default=(64, 512, 1024),
    show_default=True,
    help="Tokens in the cache before the pass; may be given again.",
)
@click.option(
    "--repeats", default=9, show_default=True, type=click.IntRange(1), help="Passes a width."
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=can_be_written,
    help="Keep the curve of the last context as a file for `bench replay --curve FILE`.",
)
@model_options
@result_options
def command(
    n_contexts: tuple[int, ...],
    repeats: int,
    save: Path | None,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measure T(n): the time of a pass over n tokens, which decides how much drafting pays.

    Each width is timed beside a single token, and the median of those ratios counts: what else the
    machine does slows both. Takes seconds for a small model, a minute or two for one of some
    gigabytes.
    """
    from codespec_bench import curve

    settings = load_settings(model_settings(model, draft_model))
    with Console(stderr=True).status("measuring") as status:

        def progress(n_context: int) -> None:
            status.update(f"measuring, {n_context} tokens in the cache")

        rows = curve.run(settings, n_contexts, repeats, progress)
    if save is not None:
        curve.save(rows[-1], save)
    deliver("curve", rows, as_json, output, curve.print_rows)
