"""`codespec bench peers`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn

from codespec.cli import INTERRUPTED, model_options, model_settings
from codespec.cli.bench.history import commits_option, paths_option, repo_argument
from codespec.cli.bench.results import deliver, result_options
from codespec.config import load_settings

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@repo_argument
@click.option(
    "--llama-server",
    type=_FILE,
    metavar="FILE",
    help="llama.cpp's server (default: LLAMA_SERVER, or the one on the PATH).",
)
@click.option(
    "--arctic", type=_FILE, metavar="FILE", help="ArcticInference's _C extension, if not installed."
)
@commits_option(25, "Last commits to take edits from.")
@click.option(
    "--places", "n_places", type=click.IntRange(1), metavar="N",
    help="Most edits, each of them two requests.  [default: 40, with --quick 5]",
)  # fmt: skip
@paths_option
@click.option(
    "--repeats", default=3, show_default=True, type=click.IntRange(1), help="Runs of each."
)
@click.option(
    "--threads", "n_threads", default=0, show_default=True, type=click.IntRange(0),
    help="Threads of every peer; 0: one a core, at most 8.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Defaults only, few edits: under a minute.")
@model_options
@result_options
def command(
    repo: Path,
    llama_server: Path | None,
    arctic: Path | None,
    commits: int,
    n_places: int | None,
    paths: str,
    repeats: int,
    n_threads: int,
    quick: bool,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Decode the same requests with every way that people use, side by side.

    The requests are edits from REPO's history, each at its place with the repository as it was, and
    the same places with nothing but twenty lines before them. The same model file writes its own
    continuation, greedily. Peers: plain decoding, prompt lookup and ArcticInference's suffix trie
    in codespec's loop; llama-server plain, with each kind of its n-gram speculation, and with the
    draft model, its time what it says itself, without HTTP; transformers plain, with prompt lookup
    and with the draft model, on the weights unpacked to 32-bit floats. Each at its defaults and at
    settings that suit short drafts. "pred." is what follows from the cost of passes, timed between
    the requests, and our own work. Interrupted (Ctrl-C), it tells of the requests that it finished.
    """
    from codespec_bench.peers import report
    from codespec_bench.peers.run import PeerComparison

    chosen = model_settings(model, draft_model).get("model", {})
    if n_threads:
        chosen["n_threads"] = n_threads
    comparison = PeerComparison(
        repo,
        load_settings({"model": chosen}),
        str(llama_server.absolute()) if llama_server else None,
        arctic,
        commits,
        paths,
        n_places or (5 if quick else 40),
        1 if quick else repeats,
        quick,
    )
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TextColumn("requests"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting peers", total=None)

        def progress(i: int, n: int) -> None:
            bar.update(task, completed=i, total=n, description="comparing")

        rows = comparison.run(progress)
    deliver("peers", rows, as_json, output, report.print_rows, [repo])
    report.print_missing(comparison.missing)
    if comparison.ended:
        click.echo(f"{comparison.ended}: what was finished is above", err=True)
        raise SystemExit(INTERRUPTED)
