"""Arguments and options of the benchmarks that read Git histories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)

repo_argument = click.argument("repo", type=_FOLDER)
"""repo: one folder."""

this_repo_argument = click.argument("repo", type=_FOLDER, default=Path())
"""repo: one folder, the current one where none is named."""

repos_argument = click.argument("repos", nargs=-1, required=True, metavar="REPO...", type=_FOLDER)
"""repos: one folder or more."""

until_option = click.option(
    "--until", default="HEAD", show_default=True, metavar="REV", help="The last of these commits."
)
paths_option = click.option(
    "--paths", default="*.py", show_default=True, metavar="GLOB", help="Files whose edits count."
)


def commits_option(n: int, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How many commits are taken. n: the default. text: what becomes of them, for the help."""
    return click.option(
        "--commits", default=n, show_default=True, type=click.IntRange(1), help=text
    )
