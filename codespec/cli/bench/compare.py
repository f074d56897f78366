"""`codespec bench compare`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from codespec.cli import print_json
from codespec.errors import InputError

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a figure.")
def command(a: Path, b: Path, as_json: bool) -> None:
    """Set the results in file B beside those in file A: medians, ratios, intervals.

    Both are files that benchmarks wrote with --output. Run a benchmark several times with the same
    file to get 95 % intervals; a ratio in bold is one whose interval excludes equality.
    """
    from codespec_bench import compare, origins, results

    ours, theirs = results.read(a), results.read(b)
    differences = compare.compare(ours, theirs)
    if not differences:
        raise InputError(
            f"{a} and {b} have no figure in common", "Were both made by one benchmark?"
        )
    apart = compare.machines_apart(ours, theirs)
    if apart:
        click.echo(f"note: these are not of one machine ({'; '.join(apart)})", err=True)
    differ = origins.differ(ours, theirs)
    if differ:
        click.echo(f"note: these are not of one repository ({', '.join(differ)})", err=True)
    if not as_json:
        compare.print_differences(differences)
        return
    for difference in differences:
        print_json({**dataclasses.asdict(difference), "ratio": difference.ratio})
