"""`codespec bench index`."""

from __future__ import annotations

from pathlib import Path

import click

from codespec.cli import FiniteRange, model_options, model_settings
from codespec.cli.bench.results import deliver, result_options
from codespec.config import load_settings


@click.command()
@click.option(
    "--corpus",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of Python files (default: this Python's library and packages).",
)
@click.option(
    "--peer",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The peer's extension module, where its package is not installed.",
)
@click.option(
    "--scale",
    type=FiniteRange(0),
    default=0,
    metavar="N",
    help="Also build and ask N tokens: the corpus and copies with renamed identifiers.",
)
@model_options
@result_options
def command(
    corpus: Path | None,
    peer: Path | None,
    scale: float,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Size, speed and acceptance of the workspace index, beside the best public peer.

    Takes about two minutes on the default corpus, and a few more with --scale 100e6.
    """
    from codespec_bench import index, index_report

    settings = load_settings(model_settings(model, draft_model))
    rows = [index.run(corpus, settings, peer, int(scale))]
    deliver("index", rows, as_json, output, index_report.print_rows)
