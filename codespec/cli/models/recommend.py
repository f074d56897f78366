"""`codespec models recommend`"""

from __future__ import annotations

import shlex
from os.path import realpath
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table

from codespec.backends.registry import backend_of
from codespec.cli import json_option, print_json
from codespec.cli.models.columns import folded
from codespec.models import catalogue, elsewhere, expected, hardware, library
from codespec.models.entries import ENTRIES, CatalogueEntry
from codespec.models.split import size_of

_LINE = 12  # tokens of a usual line of code
_FILLS_IN = {
    True: "fills in the middle",
    False: "goes on from the text before the cursor",
    None: "filling in: not known",
}


@click.command()
@click.option(
    "--all", "shows_all", is_flag=True, help="Also what is known of each, and from where."
)
@click.option("--no-speed", is_flag=True, help="Do not measure this machine.")
@json_option
def command(shows_all: bool, no_speed: bool, as_json: bool) -> None:
    """Open code models, and what suits this machine: to complete, for next edits, to draft.

    A token takes at least the time in which this machine reads the weights from memory, which is
    measured. Of a GPU nothing is expected: `codespec models show NAME` measures a model that is
    here.
    """
    uses_gpu = backend_of("").device() != "cpu"
    machine = hardware.detect(uses_gpu=uses_gpu)
    here = catalogue.tier_of(machine)
    choice = catalogue.recommended(here)
    edits = catalogue.recommended_for_edits(here, choice)
    rate = None if no_speed or uses_gpu else expected.memory_rate()
    tiers = {tier.name: catalogue.recommended(tier) for tier in catalogue.TIERS}
    listed = {realpath(a.path) for a in library.added().values()}
    kept = [f for f in elsewhere.find_all() if realpath(f.path) not in listed]
    if as_json:
        print_json(
            {
                "machine": here.name,
                "memory_bytes": here.memory_bytes,
                "recommended": choice.name if choice else None,
                "recommended_for_edits": edits.name if edits else None,
                "recommended_to_draft": "bundled",
                "read_bytes_per_s": round(rate) if rate else None,
                "by_machine": {name: e.name if e else None for name, e in tiers.items()},
                "elsewhere": [
                    {**f._asdict(), "path": str(f.path), "bytes": size_of(f.path)} for f in kept
                ],
                "models": [_as_json(e, here, rate) for e in ENTRIES],
            }
        )
        return
    Console().print(_table(tiers, rate))
    if shows_all:
        _echo_sources()
    others = ", ".join(catalogue.names_without_download())
    click.echo(f"these you download yourself, then add the file: {others}")
    click.echo(f"this machine: {here.name}, {here.memory_bytes / 1e9:.1f} GB for a model")
    click.echo(f"  ({here.why})")
    if machine.has_idle_gpu:
        click.echo("  its GPU is left out, as llama.cpp cannot use it here; why: codespec doctor")
    _echo_together(choice, edits, rate)
    if kept:
        click.echo("other programs keep these here, which can be used where they are:")
    for f in kept:
        said = f"({f.keeper}, {size_of(f.path) / 1e9:.1f} GB)"
        click.echo(f"  codespec models add {shlex.quote(f.name)}   {said}")


def _as_json(e: CatalogueEntry, here: catalogue.Tier, rate: float | None) -> dict[str, Any]:
    return {
        "name": e.name,
        "n_params_b": e.n_params_b,
        "n_active_b": e.n_active_b or e.n_params_b,
        "file_gb": e.file_gb,
        "memory_bytes": e.memory_bytes,
        "licence": e.licence.in_words,
        "is_open": e.licence.is_open,
        "n_context": e.n_context,
        "fills_in": e.fills_in,
        "architecture": e.architecture,
        "source": e.source,
        "looked_up": e.looked_up,
        "fits": e.memory_bytes <= here.memory_bytes,
        "least_ms_a_token": round(expected.ms_a_token(e, rate), 1) if rate else None,
        "repo": e.repo,
        "file": e.file,
        "for_edits": e.for_edits,
    }


def _table(tiers: dict[str, CatalogueEntry | None], rate: float | None) -> Table:
    columns = "parameters", "needs", "a token", "licence", "suits"
    table = Table(Column("model", no_wrap=True), *map(folded, columns), box=None)
    for e in ENTRIES:
        suits = ", ".join(name for name, best in tiers.items() if best is e)
        suits = suits or ("next edits" if e.for_edits else "")
        params, needs = f"{e.n_params_b:.1f} B", f"{e.memory_bytes / 1e9:.1f} GB"
        took = f"{expected.ms_a_token(e, rate):,.0f} ms" if rate else "-"
        table.add_row(e.name, params, needs, took, e.licence.in_words, suits)
    return table


def _echo_sources() -> None:
    for e in ENTRIES:
        what = "proposes next edits" if e.for_edits else _FILLS_IN[e.fills_in]
        context = f"{e.n_context:,} tokens" if e.n_context else "not known"
        active = f"; {e.n_active_b:g} B parameters a token" if e.n_active_b else ""
        click.echo(f"{e.name}: {what}; context: {context}; {e.architecture}{active}")
        click.echo(f"  {e.source}, read on {e.looked_up}")


def _echo_together(
    choice: CatalogueEntry | None, edits: CatalogueEntry | None, rate: float | None
) -> None:
    def what_to_type(command: str, e: CatalogueEntry) -> str:
        took = ""
        if rate:
            ms = expected.ms_a_token(e, rate)
            took = f", at least {ms:.0f} ms a token, {ms * _LINE / 1e3:.1f} s a line without drafts"
        return f"{command}   ({e.file_gb:.1f} GB{took})"

    click.echo("together, on this machine:")
    if choice is None:
        click.echo("  to complete: the bundled model is what fits")
    else:
        click.echo(f"  to complete: {what_to_type(f'codespec models add {choice.name}', choice)}")
    if edits is None:
        click.echo("  next edits:  from lookups alone; no model for them fits beside it")
    else:
        click.echo(f"  next edits:  {what_to_type(f'codespec models add {edits.name}', edits)}")
        click.echo(f"               codespec models default --edits {edits.name}")
    click.echo("  to draft:    the bundled draft model; `codespec distill` makes one of your own")
    if rate:
        click.echo(f"  (a token reads the weights once, at {rate / 1e9:.1f} GB/s, measured now)")
