"""`codespec bench rewrite`."""

from __future__ import annotations

from pathlib import Path

import click

from codespec.cli import model_settings
from codespec.cli.bench.history import commits_option, paths_option, repo_argument, until_option
from codespec.cli.bench.results import deliver, result_options
from codespec.config import load_settings
from codespec.models.resolve import target_path

_CURVES = ("cpu-600m-q8-ours", "cpu-1500m-q8-ours", "h100-7b-q8")


@click.command()
@repo_argument
@commits_option(20, "Last commits whose windows are rewritten.")
@until_option
@paths_option
@click.option(
    "--curve", "curves",
    default=_CURVES,
    show_default=True,
    multiple=True,
    metavar="NAME|FILE",
    help="Cost of a pass: a shipped curve, or a JSON file of the same form. May be repeated.",
)  # fmt: skip
@click.option(
    "--vocabulary",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="GGUF in whose tokens the true text is told (default: the target of the settings).",
)
@click.option(
    "--model",
    metavar="FILE",
    help='GGUF of a model whose passes are timed, or "bundled"; the true text takes the place of '
    "what it says (default: none, see --curve).",
)
@result_options
def command(
    repo: Path,
    commits: int,
    until: str,
    paths: str,
    curves: tuple[str, ...],
    vocabulary: Path | None,
    model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Rewrite the windows around a Git history's edits, as next-edit models do.

    Each window is 21 lines around a hunk of one of the last commits; the text that it becomes is
    written token by token, and stands in for the model. A pass over k drafted tokens costs what the
    curve says for k + 1. Beside codespec: prompt lookup with fixed settings (prompt-lookup-N-K: the
    last N tokens or fewer, K drafted), codespec without the old text, and the ideal, which drafts
    the longest run of the old text that will be accepted, as much of it as pays.

    With --model FILE the passes are that model's, on the clock.
    """
    from codespec_bench import rewrite_report

    if model is not None:
        settings = load_settings(model_settings(model, "none"))
        rows = rewrite_report.run_model(repo, settings, commits, paths, until)
        deliver("rewrite-model", rows, as_json, output, rewrite_report.print_rows, [repo])
        return
    told = vocabulary or target_path(load_settings().model)
    rows = rewrite_report.run(repo, told, curves, commits, paths, until)
    deliver("rewrite", rows, as_json, output, rewrite_report.print_rows, [repo])
