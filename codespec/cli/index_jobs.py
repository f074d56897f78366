"""What `codespec index` does that reads files: in a child process, which may die of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from codespec.backends.llama import LlamaTokenizer, default_threads, load_model
from codespec.cli.index_reports import print_report
from codespec.config import Settings
from codespec.index.build import BuildProgress, BuildReport
from codespec.index.indexer import be_modest, run_indexer
from codespec.index.watch import Hints, Keeper, elected, file_events
from codespec.index.words import WordEncoder
from codespec.models.registry import target_path

# Each file that crashes the parser costs one run, and is read as plain text or left out afterwards.
_MAX_CRASHES = 50


def supervise(quiet: bool) -> int:
    """The same command in a child: parsers are native code that reads whatever a repository
    holds. A file in work when the child dies is remembered and treated with care next time."""
    command = [sys.executable, "-m", "codespec", *sys.argv[1:], "--in-process"]
    code = 0
    for _ in range(_MAX_CRASHES):
        code = subprocess.run(command, check=False).returncode
        if code >= 0 or -code in (signal.SIGINT, signal.SIGTERM):
            return abs(code)
        if not quiet:
            click.echo("a file crashed the parser; going on without it", err=True)
    return 1


def _encoder(settings: Settings) -> WordEncoder:
    vocabulary = load_model(target_path(settings.model), vocab_only=True)
    return WordEncoder(LlamaTokenizer(vocabulary))


def build(path: Path, settings: Settings, quiet: bool) -> BuildReport:
    """Build or update, with a progress bar."""
    encoder = _encoder(settings)
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("indexing", total=None, count="")

        def show(p: BuildProgress) -> None:
            count = f"{p.n_files_done} of {p.n_files} files" if p.n_files else ""
            bar.update(task, completed=p.n_bytes_done, total=p.n_bytes or None, count=count)

        return run_indexer(path, encoder, settings.index, show, n_threads=default_threads())


def watch(path: Path, settings: Settings, quiet: bool, as_json: bool) -> None:
    """Until standard input ends, or the workspace is gone. Lines read from there are paths that
    somebody knows to have changed."""
    root = os.path.realpath(path)
    stop = threading.Event()
    hints = Hints(root, stop)
    hints.listen(sys.stdin)
    be_modest()
    encoder = _encoder(settings)

    def tell(report: BuildReport) -> None:
        if not quiet:
            print_report(path, report, as_json)
            sys.stdout.flush()

    keeper = Keeper(root, encoder, settings.index, stop, default_threads(), tell)
    with elected(keeper.store, stop) as is_ours:
        if is_ours:
            keeper.run(file_events(root, stop), hints)
