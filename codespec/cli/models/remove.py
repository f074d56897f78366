"""`codespec models remove`"""

from __future__ import annotations

import click

from codespec.cli.models.in_use import files_in_use, roles
from codespec.models import library

_GO_BACK = {
    "target": "it is the model in use; go back: codespec models default bundled",
    "draft": "it is the draft model in use; go back: codespec models default --draft auto",
    "edits": "it is the next-edit model in use; without one: codespec models default --edits none",
}


@click.command()
@click.argument("name")
@click.option("--keep-file", is_flag=True, help="Forget it, and leave its file where it is.")
def command(name: str, keep_file: bool) -> None:
    """Forget a model. A file that was downloaded is deleted, one of your own never."""
    listed = library.find_listed(name)
    for role in roles(listed, files_in_use()) if listed else ():
        click.echo(_GO_BACK[role])
    files = library.remove(name)
    if keep_file or not files:
        click.echo(f"forgot {name}")
        return
    for file in files:
        file.unlink(missing_ok=True)
        click.echo(f"deleted {file}")
