"""`codespec models show`"""

from __future__ import annotations

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from codespec.backends.registry import scheme_of
from codespec.cli import json_option, print_json
from codespec.cli.models.columns import folded
from codespec.cli.models.facts import describe, in_words
from codespec.config import load_settings
from codespec.models import library


@click.command()
@click.argument("model")
@click.option("--no-speed", is_flag=True, help="Do not measure its speed.")
@json_option
def command(model: str, no_speed: bool, as_json: bool) -> None:
    """Show facts about a model (a name from the list, or a file), its needs, and its speed here."""
    where = model if scheme_of(model) else str(library.find(model))
    facts = describe(where, load_settings(), measure=not no_speed)
    if as_json:
        print_json(facts)
        return
    table = Table(Column(no_wrap=True), folded(), show_header=False, box=None)
    for row in in_words(facts):
        table.add_row(*map(escape, row))
    Console().print(table)
