"""Builds of `codespec index`: in a child process, which the files it reads may kill."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from codespec.backends.registry import open_tokenizer
from codespec.cli import print_json, printable
from codespec.cli.index.reports import print_report
from codespec.config import Settings
from codespec.index.build import BuildProgress, BuildReport
from codespec.index.indexer import MAX_MEMORY_BYTES, run_indexer
from codespec.index.parsers import Parsers
from codespec.index.watch import Hints, IndexKeeper, elected, file_events
from codespec.index.word_encoder import WordEncoder
from codespec.system.processes import (
    TERMINATION_SIGNALS,
    default_threads,
    ending_in_order,
    lower_priority,
    module_command,
)

PROGRESS_S = 0.5
"""Seconds. A build that takes longer reports its progress."""
# Each file that crashes the tokenizer costs two runs, and is left out afterwards.
_MAX_CRASHES = 50
_PATIENCE_S = 5.0
_WINDOWS_CRASH = 0xC0000000  # exit codes from here on are exceptions of native code


def supervise(quiet: bool) -> int:
    """Run the same command in a child: tokenizers are native code that reads whatever a repository
    holds. A file in work when the child dies is remembered and treated with care next time.
    Returns: an exit status."""
    command = module_command("codespec", *sys.argv[1:], "--in-process")
    code = 0
    for _ in range(_MAX_CRASHES):
        with ending_in_order():
            code = _run(command)
        crashed = code < 0 or code >= _WINDOWS_CRASH
        if not crashed or -code in (signal.SIGINT, *TERMINATION_SIGNALS):
            return abs(code)
        if not quiet:
            click.echo("a file crashed the indexer; going on with care", err=True)
    click.echo(f"gave up after {_MAX_CRASHES} crashes; the same command goes on", err=True)
    return 1


def _run(command: list[str]) -> int:
    """Run the child, which does not outlive this process. It gets time to end: a file that it has
    in work when it is killed gets the blame in the next run."""
    with subprocess.Popen(command) as child:
        try:
            return child.wait()
        except (SystemExit, KeyboardInterrupt):
            child.terminate()  # also where a terminal has told it, as not every interrupt is one's
            raise
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_PATIENCE_S)
            child.kill()


def _encoder(settings: Settings) -> WordEncoder:
    return WordEncoder(open_tokenizer(settings))


def build(path: Path, settings: Settings, quiet: bool) -> BuildReport:
    """Build or update an index, with a progress bar."""
    encoder = _encoder(settings)
    console = Console(stderr=True)
    is_unseen = quiet or not console.is_terminal
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=is_unseen) as bar:
        task = bar.add_task("indexing", total=None, count="")

        def show(p: BuildProgress) -> None:
            count = f"{p.n_files_done} of {p.n_files} files" if p.n_files else ""
            bar.update(task, completed=p.n_bytes_done, total=p.n_bytes or None, count=count)

        return run_indexer(path, encoder, settings.index, show, n_parsers=default_threads())


class ProgressLines:
    """Progress for programs that start us: a line now and then while a build takes long, and at its
    end."""

    def __init__(self) -> None:
        self._told_s: float | None = None
        self._has_told = False

    def __call__(self, p: BuildProgress) -> None:
        now = time.monotonic()
        if p.phase == "scan":
            self._told_s = now
        elif p.phase == "done":
            if self._has_told:
                self._tell(p.n_files, p.n_files)
            self._has_told = False
        elif p.n_files and self._told_s is not None and now - self._told_s >= PROGRESS_S:
            self._told_s, self._has_told = now, True
            self._tell(p.n_files_done, p.n_files)

    def _tell(self, n_done: int, n_files: int) -> None:
        print_json({"n_files_done": n_done, "n_files": n_files})
        sys.stdout.flush()


def watch(path: Path, settings: Settings, quiet: bool, as_json: bool, progress: bool) -> None:
    """Watch a workspace until it is gone, or a signal ends the process. progress: for a program
    that starts us, print {n_files_done, n_files}, or a {note} for its log, in lines of JSON; end
    with standard input, whose lines are paths that the program knows to have changed."""
    root = os.path.realpath(path)
    stop = threading.Event()
    hints = Hints(root, stop)
    if progress:
        hints.listen(sys.stdin)
    lower_priority(MAX_MEMORY_BYTES)
    encoder = _encoder(settings)

    def tell(report: BuildReport) -> None:
        if not quiet:
            print_report(path, report, as_json)
            sys.stdout.flush()

    def note(text: str) -> None:
        if progress:
            print_json({"note": text})
            sys.stdout.flush()
        else:
            click.echo(f"{printable(root)}: {text}", err=True)

    lines = ProgressLines()

    def show(p: BuildProgress) -> None:
        if progress:
            lines(p)

    with Parsers(default_threads()) as parsers:
        keeper = IndexKeeper(root, encoder, settings.index, stop, parsers, tell, show)
        is_deleted = True
        while is_deleted:
            with elected(keeper.store, stop) as is_ours:
                is_deleted = is_ours and keeper.run(file_events(root, stop, note), hints)
