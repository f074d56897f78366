"""`codespec index PATH`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from codespec.cli import check_folder, model_option, model_settings
from codespec.cli.index import building, reports, secret_report
from codespec.config import load_settings
from codespec.system.processes import ending_in_order


@click.command()
@click.argument("path", type=click.Path(path_type=Path), required=False)
@model_option
@click.option("--watch", is_flag=True, help="Keep the index fresh, until you end it.")
@click.option("--status", is_flag=True, help="What is there; without PATH, all.")
@click.option("--verify", is_flag=True, help="Check every byte; mend damage.")
@click.option("--no-repair", is_flag=True, help="With --verify: only report.")
@click.option(
    "--prune",
    is_flag=True,
    help="Delete indexes of no use, of all workspaces, and the oldest beyond max_cache_bytes.",
)
@click.option("--symbols", metavar="NAME", help="Where the workspace defines NAME.")
@click.option("--secrets", is_flag=True, help="What is cut out of files, and by which rule.")
@click.option("--quiet", is_flag=True, help="No progress and no report.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.option("--progress", is_flag=True, hidden=True)
@click.option("--in-process", is_flag=True, hidden=True)
def command(
    path: Path | None,
    model: str | None,
    no_repair: bool,
    symbols: str | None,
    quiet: bool,
    as_json: bool,
    progress: bool,
    in_process: bool,
    **jobs: bool,
) -> None:
    """Index the workspace at PATH (default: this folder), or bring its index up to date.

    Only changed files are read again. What .gitignore, .ignore and .codespecignore exclude is left
    out, and so are files of secrets, generated files, and data; what looks like a secret is cut out
    of the others. The index is kept in the cache folder, one for each tokenizer; nothing is written
    to the workspace.
    """
    asked = [
        name for name, is_asked in {**jobs, "symbols": symbols is not None}.items() if is_asked
    ]
    if len(asked) > 1:
        raise click.UsageError(f"one at a time: {' or '.join(f'--{name}' for name in asked)}")
    job = asked[0] if asked else ""
    if path is not None and job == "prune":
        raise click.UsageError("--prune takes no PATH: it is about the indexes of all workspaces")
    if no_repair and job != "verify":
        raise click.UsageError("--no-repair goes with --verify")
    settings = load_settings(model_settings(model))
    if job == "status":
        reports.print_status(path, as_json)
        return
    if job == "prune":
        reports.print_pruned(settings.index.max_cache_bytes, as_json)
        return
    root = path or Path()
    check_folder(root)
    if job == "secrets":
        secret_report.print_secrets(root, settings.index, as_json)
        return
    if symbols is not None:
        sys.exit(reports.print_symbols(root, symbols, as_json))
    if not in_process:
        if job == "verify":
            damaged = reports.verify(root, not no_repair, as_json)
            if not damaged or no_repair:
                sys.exit(int(damaged))
        sys.exit(building.supervise(quiet))
    with ending_in_order():
        if job == "watch":
            building.watch(root, settings, quiet, as_json, progress)
            return
        report = building.build(root, settings, quiet or as_json)
    if not job and (as_json or not quiet):
        reports.print_report(root, report, as_json)
