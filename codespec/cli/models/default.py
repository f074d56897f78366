"""`codespec models default`"""

from __future__ import annotations

from contextlib import closing

import click
import msgspec

from codespec.backends.base import TargetBackend
from codespec.backends.registry import (
    backend_of,
    open_vocabulary,
    scheme_of,
    target_of,
    try_out,
)
from codespec.config import load_settings, origins
from codespec.engine.draft_models import check_draft
from codespec.engine.next_edit_model import form_of_model
from codespec.errors import InputError
from codespec.models import library
from codespec.models.resolve import draft_path


@click.command()
@click.argument("model", required=False)
@click.option("--draft", metavar="MODEL", help='Its draft model; "auto", or "none".')
@click.option("--edits", metavar="MODEL", help='The next-edit model beside it, or "none".')
def command(model: str | None, draft: str | None, edits: str | None) -> None:
    """Make MODEL (a name from the list, a file, or "bundled") the one to complete with."""
    if model is None and draft is None and edits is None:
        raise click.UsageError("name a MODEL, or --draft, or --edits, or several of them")
    chosen = {"target": model, "draft": draft}
    settings = load_settings().model
    values: dict[str, str] = {}
    for key, value in chosen.items():
        if value is None:
            continue
        if scheme_of(value):
            try_out(value)
            values[key] = value
        elif key == "target" and value == "bundled":
            values[key] = ""
        elif key == "draft" and value in ("auto", "none"):
            values[key] = "auto" if value == "auto" else ""
        else:
            path = library.find(value)
            try_out(path)
            values[key] = value if value in library.BUNDLED else library.absolute_path(path)
    settings = msgspec.structs.replace(settings, **values)
    small = draft_path(settings)
    if small is not None and isinstance(backend_of(target_of(settings)), TargetBackend):
        # Before anything is written: with a pair that does not match no model starts.
        check_draft(target_of(settings), small)
    chosen_edits = None if edits is None else _next_edit_model(edits)
    for key, setting in values.items():
        _set("model", key, setting)
    if chosen_edits is not None:
        _set("edits", "model", chosen_edits)
    click.echo("editors take it by themselves, each model with a daemon of its own;")
    click.echo("that of the last one ends after a while, or at once: codespec daemon stop --all")


def _next_edit_model(named: str) -> str:
    """The setting for a next-edit model. Raises: InputError for a model that was not made for
    that."""
    if named == "none":
        return ""
    path = library.find(named)
    try_out(path)
    with closing(open_vocabulary(path)) as model:
        form = form_of_model(model.info, model.special_tokens)
    if form is None:
        raise InputError(
            f"{named} is no next-edit model that is known here",
            "Known: Sweep's and Zed's (Zeta); see codespec models recommend.",
        )
    return library.absolute_path(path)


def _set(section: str, key: str, setting: str) -> None:
    file = library.set_default(section, key, setting)
    click.echo(f'{section}.{key} = "{setting}" in {file}')
    if (origin := origins().get((section, key), str(file))) != str(file):
        click.echo(f"  but {origin} says otherwise, and comes first", err=True)
