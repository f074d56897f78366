"""Options and output that all benchmarks share on the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from codespec.cli import print_json


def can_be_written(_: click.Context, __: click.Parameter, file: Path | None) -> Path | None:
    """Callback of an option: fails before the measurements if the file cannot be written."""
    if file is not None and not os.access(file if file.exists() else file.parent, os.W_OK):
        raise click.BadParameter(f"{file} cannot be written")
    return file


def result_options(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator with the options --json and --output of every benchmark: as_json and output."""
    f = click.option(
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        callback=can_be_written,
        help="Also append the results to a file of JSON lines, for `bench compare` and `report`.",
    )(f)
    return click.option("--json", "as_json", is_flag=True, help="One line of JSON a result.")(f)


def deliver(
    bench: str,
    rows: Sequence[dict[str, Any]],
    as_json: bool,
    output: Path | None,
    show: Callable[[list[dict[str, Any]]], None],
    measured: Sequence[Path] = (),
) -> None:
    """Print a benchmark's rows for machines, or `show` them to people, and keep them, even if
    nobody reads the printed ones any more. measured: folders that were measured on, by whose names,
    and histories if names are alike, rows of several in one file are told apart.

    Raises: InputError.
    """
    from codespec_bench import origins, results

    if measured:
        repository = " ".join(folder.resolve().name for folder in measured)
        of = [origins.origin(folder) for folder in measured]
        rows = [{"repository": repository, "origin": of, **row} for row in rows]
    found: list[dict[str, Any]] = results.stamped(bench, rows)
    try:
        if as_json:
            for row in found:
                print_json(row)
        else:
            show(found)
    finally:
        if output is not None:
            results.append(output, found)
