"""`codespec bench latency`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from codespec.cli import FiniteRange, model_options, model_settings
from codespec.cli.bench.history import commits_option, paths_option, this_repo_argument
from codespec.cli.bench.results import deliver, result_options


@click.command()
@this_repo_argument
@commits_option(25, "Last commits to take edits from.")
@paths_option
@click.option(
    "--keys", "n_keys", default=300, show_default=True, type=click.IntRange(1),
    help="Keys to press in each editor.",
)  # fmt: skip
@click.option(
    "--pace", default=1.0, show_default=True, type=FiniteRange(0, min_open=True),
    help="Factor of the pauses between keys; below 1 types faster than people do.",
)  # fmt: skip
@click.option(
    "--threads", "n_threads", default=0, show_default=True, type=click.IntRange(0),
    help="Threads of the model; 0: as the settings say, or chosen while it works.",
)  # fmt: skip
@model_options
@result_options
def command(
    repo: Path,
    commits: int,
    paths: str,
    n_keys: int,
    pace: float,
    n_threads: int,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Type the edits of a Git history (default: of the current folder) again, key by key with
    human pauses, in an indexed workspace, through a language server and a daemon of their own.

    For each editor, with its own pause before it asks: how soon suggestions come and are in view,
    what of it is not the engine, work that was cancelled, acceptance by source, memory. The start
    of the processes stands apart. bench/README.md says how keys are made of a history.
    """
    from codespec_bench import latency

    chosen = model_settings(model, draft_model).get("model", {})
    if n_threads:
        chosen["n_threads"] = n_threads
    typing = latency.Typing(repo.resolve(), commits, paths, n_keys, pace, chosen)
    with Console(stderr=True).status("reading the history") as status:
        rows = typing.run(status.update)
    deliver("latency", rows, as_json, output, latency.print_rows, [repo])
