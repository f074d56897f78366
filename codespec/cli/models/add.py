"""`codespec models add`"""

from __future__ import annotations

from typing import Any

import click
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from codespec.backends.registry import try_out
from codespec.cli import json_option, print_json
from codespec.errors import InputError, ModelError
from codespec.models import catalogue, download, elsewhere, library, provenance
from codespec.models.split import parts
from codespec.system.processes import ending_in_order
from codespec.system.progress import BarOrLines


@click.command()
@click.argument("source")
@click.option("--sha256", metavar="HEX", help="SHA-256 that the file must have.")
@json_option
def command(source: str, sha256: str | None, as_json: bool) -> None:
    """Add a model: a .gguf FILE, a URL of one, or a NAME that `codespec models recommend` lists,
    for download or as one that another program keeps here. Files stay where they are.

    A download that was interrupted goes on where it stopped; one that does not have the SHA-256
    you give, or the model hub states, is not kept, and a FILE that does not is not added.
    """
    entry = catalogue.by_name(source)
    path, name = library.path_of(source), ""
    kept = None if path.is_file() else elsewhere.by_name(source)
    if kept is not None:
        path, name = kept.path, kept.name
    if sha256 is not None and len(parts(source.partition("?")[0])) > 1:
        raise InputError(
            f"{source}: one file of several, and --sha256 is the sum of one",
            "Leave it out; or check each file with sha256sum, then add the first one.",
        )
    if path.is_file():
        digest = None if sha256 is None else download.check_file(path, sha256)
        try_out(path)
        name = library.add(path, name=name)
        facts: dict[str, Any] = {"name": name, "path": str(library.find(name))}
        if digest is not None:
            facts |= {"sha256": digest, "verified": True}
    elif entry is not None or "://" in source:
        facts = _download(download.hub_url(entry.repo, entry.file) if entry else source, sha256)
    elif source in catalogue.names_without_download():
        raise InputError(
            f"{source} cannot be downloaded by its name",
            "Download a .gguf file of it yourself, then: codespec models add FILE",
        )
    else:
        raise InputError(
            f"{source}: no such file, and no model of that name is known",
            "Give a .gguf file, its address, or a name from: codespec models recommend",
        )
    if as_json:
        print_json(facts)
        return
    click.echo(f"added {facts['name']}: {facts['path']}")
    if not facts.get("verified", True):
        click.echo(f"nobody stated its SHA-256; it is {facts['sha256']}")
    role = "--edits " if entry is not None and entry.for_edits else ""
    click.echo(f"use it: codespec models default {role}{facts['name']}")


def _download(url: str, sha256: str | None) -> dict[str, Any]:
    """Download a model and put it on the list. All files of a split model are fetched, whichever of
    them was named; the first one stands for it."""
    first, *others = download.urls_of_parts(url)
    library.name_for(
        library.downloads_folder() / download.file_name(first), first
    )  # before it is fetched
    if others:
        # llama.cpp loads files by the names that they are to have.
        fetched = [_fetch(each, None, lambda _: None) for each in (first, *others)]
        try:
            try_out(fetched[0].path)
        except ModelError:
            for each in fetched:
                provenance.delete(each.path)
            raise
    else:
        fetched = [_fetch(first, sha256, try_out)]
    return {
        "name": library.add(fetched[0].path, first, fetched[0].sha256),
        "path": str(fetched[0].path),
        "bytes": sum(each.n_bytes for each in fetched),
        "sha256": fetched[0].sha256,
        "verified": all(each.is_verified for each in fetched),
    }


def _fetch(url: str, sha256: str | None, check: download.Check) -> download.DownloadedFile:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with BarOrLines(*columns) as bar:
        name = download.file_name(url)
        task = bar.add_task(name, total=None)

        def on_progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)
            whole = f" of {total / 1e6:,.0f}" if total else ""
            bar.say(f"{name}: {done / 1e6:,.0f}{whole} MB")

        try:
            with ending_in_order():
                return download.fetch(url, library.downloads_folder(), sha256, on_progress, check)
        except KeyboardInterrupt:
            bar.stop()
            click.echo("stopped; the same command goes on, where the server lets it", err=True)
            raise
