"""`codespec models recommend`"""

from __future__ import annotations

import shlex
from os.path import realpath

import click
from rich.console import Console
from rich.table import Column, Table

from codespec.backends.registry import backend_of
from codespec.cli import json_option, print_json
from codespec.cli.models.columns import folded
from codespec.models import catalogue, elsewhere, hardware, library
from codespec.models.split import size_of


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List open code models, their needs, and the one that suits this machine."""
    machine = hardware.detect(uses_gpu=backend_of("").device() != "cpu")
    here = catalogue.tier_of(machine)
    choice = catalogue.recommended(here)
    tiers = {tier.name: catalogue.recommended(tier) for tier in catalogue.TIERS}
    listed = {realpath(a.path) for a in library.added().values()}
    kept = [f for f in elsewhere.find_all() if realpath(f.path) not in listed]
    if as_json:
        print_json(
            {
                "machine": here.name,
                "memory_bytes": here.memory_bytes,
                "recommended": choice.name if choice else None,
                "by_machine": {name: e.name if e else None for name, e in tiers.items()},
                "elsewhere": [
                    {**f._asdict(), "path": str(f.path), "bytes": size_of(f.path)} for f in kept
                ],
                "models": [
                    {
                        "name": e.name,
                        "n_params_b": e.n_params_b,
                        "file_gb": e.file_gb,
                        "memory_bytes": e.memory_bytes,
                        "licence": e.licence,
                        "fits": e.memory_bytes <= here.memory_bytes,
                        "repo": e.repo,
                        "file": e.file,
                        "for_edits": e.for_edits,
                    }
                    for e in catalogue.ENTRIES
                ],
            }
        )
        return
    rest = ("parameters", "needs", "licence", "suits")
    table = Table(Column("model", no_wrap=True), *map(folded, rest), box=None)
    for e in catalogue.ENTRIES:
        suits = ", ".join(name for name, best in tiers.items() if best is e)
        suits = suits or ("next edits (edits.model)" if e.for_edits else "")
        needs = f"{e.memory_bytes / 1e9:.1f} GB"
        table.add_row(e.name, f"{e.n_params_b:.1f} B", needs, e.licence, suits)
    Console().print(table)
    others = ", ".join(catalogue.names_without_download())
    click.echo(f"these you download yourself, then add the file: {others}")
    click.echo(f"this machine: {here.name}, {here.memory_bytes / 1e9:.1f} GB for a model")
    click.echo(f"  ({here.why})")
    if machine.has_idle_gpu:
        click.echo("  its GPU is left out, as llama.cpp cannot use it here; why: codespec doctor")
    if choice is None:
        click.echo("the bundled model is what fits")
    else:
        click.echo(f"get it: codespec models add {choice.name}   ({choice.file_gb:.1f} GB)")
    if kept:
        click.echo("other programs keep these here, which can be used where they are:")
    for f in kept:
        said = f"({f.keeper}, {size_of(f.path) / 1e9:.1f} GB)"
        click.echo(f"  codespec models add {shlex.quote(f.name)}   {said}")
