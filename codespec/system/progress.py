"""Progress of long commands, on standard error."""

from __future__ import annotations

import time

import click
from rich.console import Console
from rich.progress import Progress, ProgressColumn

LINE_EVERY_S = 30.0


class BarOrLines(Progress):
    """A progress bar in a terminal; elsewhere, as in a log, a line now and then."""

    def __init__(self, *columns: str | ProgressColumn, transient: bool = True) -> None:
        console = Console(stderr=True)
        is_seen = console.is_terminal
        super().__init__(*columns, console=console, transient=transient, disable=not is_seen)
        self._said_s = time.monotonic()

    def say(self, line: str, now: bool = False) -> None:
        """Print a line where there is no bar: if `now`, or if the last one is LINE_EVERY_S old."""
        if self.disable and (now or time.monotonic() - self._said_s > LINE_EVERY_S):
            self._said_s = time.monotonic()
            click.echo(line, err=True)
