"""`codespec models list|show|add|remove|recommend|default`. One file per subcommand."""

from __future__ import annotations

import click

from codespec.cli import LazyGroup

_SUBCOMMANDS = {
    "add": "Add a model: a file, a URL, or a known name.",
    "default": "Choose the model to complete with.",
    "list": "The models that are here.",
    "recommend": "Open code models, and which one suits this machine.",
    "remove": "Forget a model.",
    "show": "What a model is, needs, and does here.",
}


@click.group(cls=LazyGroup, package=__name__, summaries=_SUBCOMMANDS)
def command() -> None:
    """The models here, and others that would suit this machine.

    Nothing is ever downloaded but what you name to `codespec models add`.
    """
