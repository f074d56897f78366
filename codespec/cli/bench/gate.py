"""`codespec bench gate`."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import click

from codespec.cli import FiniteRange, print_json
from codespec.errors import InputError


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--baseline",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the figures to hold.",
)
@click.option("--update", is_flag=True, help="Make the results the new baseline instead.")
@click.option(
    "--tolerance",
    default=0.01,
    show_default=True,
    type=FiniteRange(0, 1),
    help="Share by which a figure may be worse.",
)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a regression.")
def command(results: Path, baseline: Path, update: bool, tolerance: float, as_json: bool) -> None:
    """Fail when a result is worse than its baseline, in the figures that no machine changes.

    RESULTS is a file that benchmarks wrote with --output. It looks at tokens a
    pass, accepted tokens, tokens drafted without more being accepted, and bytes a token, of bench
    replay without a model and of bench index; not at times. Exit code 1 where one has become worse.
    """
    from codespec_bench import gate
    from codespec_bench import results as files

    rows = files.read(results)
    if update:
        lines = [json.dumps(row) + "\n" for row in _held(gate.gated(rows), results)]
        try:
            baseline.write_text("".join(lines), "utf-8")
        except OSError as e:
            raise InputError(f"{baseline}: {e.strerror}", "Give a file that can be written.") from e
        click.echo(f"{baseline}: {len(lines)} results", err=True)
        return
    held = _held(gate.gated(files.read(baseline)), baseline)
    worse = gate.regressions(held, rows, tolerance)
    for regression in worse:
        if as_json:
            print_json(dataclasses.asdict(regression))
        else:
            now = "missing" if regression.now is None else f"{regression.now:.6g}"
            click.echo(f"{regression.of}: {regression.figure} {regression.before:.6g} -> {now}")
    if worse:
        sys.exit(1)
    click.echo("no figure has become worse", err=True)


def _held(rows: list[dict[str, Any]], file: Path) -> list[dict[str, Any]]:
    """The rows with figures to hold. Raises: InputError if there are none: such a gate lets
    everything through."""
    if not rows:
        raise InputError(f"{file}: no figure in it that no machine changes", "Try bench replay.")
    return rows
