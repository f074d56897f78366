"""`codespec bench hop`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from codespec.cli import model_options
from codespec.cli.bench.results import deliver, result_options


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--lines", "n_lines", default=12, show_default=True, type=click.IntRange(1),
    help="Lines to type again.",
)  # fmt: skip
@click.option(
    "--key-ms", default=120.0, show_default=True, type=click.FloatRange(0), help="Between keys."
)
@click.option(
    "--threads", "n_threads", default=0, show_default=True, type=click.IntRange(0),
    help="Of the model; 0: one per core.",
)  # fmt: skip
@model_options
@result_options
def command(
    file: Path,
    n_lines: int,
    key_ms: float,
    n_threads: int,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Type lines of FILE again through a language server and a daemon of their own, and measure
    what lies between a key and its suggestion, beside the model.
    """
    from codespec_bench import hop  # pyright: ignore[reportMissingImports]

    with Console(stderr=True).status("starting") as status:

        def progress(n: int) -> None:
            status.update(f"line {n + 1} of {n_lines}")

        target = str(Path(model).absolute()) if model else ""
        rows = hop.run(file.absolute(), n_lines, key_ms, target, n_threads, progress)
    deliver("hop", rows, as_json, output, hop.print_rows)
