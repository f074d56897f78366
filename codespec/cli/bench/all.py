"""`codespec bench all`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from codespec.cli import INTERRUPTED, FiniteRange, model_options, print_json
from codespec.cli.bench.history import paths_option, this_repo_argument
from codespec.cli.bench.results import can_be_written
from codespec.config import load_settings


@click.command()
@this_repo_argument
@paths_option
@click.option(
    "--minutes", default=15.0, show_default=True, type=FiniteRange(0),
    help="What does not fit into this time is left out.",
)  # fmt: skip
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=can_be_written,
    help="Keep the results; run again with the same file, and only what is missing is done.",
)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a result.")
@model_options
def command(
    repo: Path,
    paths: str,
    minutes: float,
    output: Path | None,
    as_json: bool,
    model: str | None,
    draft_model: str | None,
) -> None:
    """All benchmarks on the Git history of REPO (default: the current folder), small enough for a
    quarter of an hour on two cores. Called by its own name, each measures more and takes longer.
    """
    from codespec_bench import everything
    from codespec_bench.history import History

    History(repo, paths)
    # In words: some steps measure a model only where one is named.
    target = model or load_settings().model.target or "bundled"
    given = {"--model": target, "--draft-model": draft_model}
    chosen = [part for flag, value in given.items() if value is not None for part in (flag, value)]
    wanted = everything.steps(repo.resolve(), chosen, paths)
    with tempfile.TemporaryDirectory(prefix="codespec-bench-") as folder:
        file = output or Path(folder, "results")
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=sum(step.seconds for step in wanted))

            def progress(step: Any, n: int) -> None:
                bar.update(
                    task,
                    description=f"{n + 1} of {len(wanted)}: {step.name}",
                    completed=sum(s.seconds for s in wanted[:n]),
                )

            outcomes = everything.run(wanted, file, minutes, progress)
        if as_json:
            for outcome in outcomes:
                for row in outcome.rows:
                    print_json(row)
                if outcome.why:
                    click.echo(f"{outcome.step.name}: left out: {outcome.why}", err=True)
        else:
            everything.print_outcomes(outcomes, output)
    if any(outcome.cause == everything.LeftOutStep.INTERRUPTED for outcome in outcomes):
        raise SystemExit(INTERRUPTED)
    if not any(outcome.rows for outcome in outcomes):
        raise everything.nothing(outcomes)
