"""`codespec models list|show|add|remove|recommend|default`"""

from __future__ import annotations

import shlex
from os.path import exists, realpath
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Column, Table

from codespec.backends.registry import backend_of, scheme_of, target_of, targets_of, try_out
from codespec.cli import json_option, print_json
from codespec.config import load_settings, origins
from codespec.errors import InputError, ModelError
from codespec.models import (
    catalogue,
    download,
    drafts,
    elsewhere,
    hardware,
    library,
    provenance,
)
from codespec.models.registry import BUNDLED_DRAFT, BUNDLED_TARGET, bundled, draft_path, target_path
from codespec.models.split import parts, size_of
from codespec.processes import ending_in_order
from codespec.progress import BarOrLines

_GO_BACK = {
    "target": "it is the model in use; go back: codespec models default bundled",
    "draft": "it is the draft model in use; go back: codespec models default --draft auto",
}


def _folded(header: str = "") -> Column:
    """Where a terminal is narrow, over several lines, with nothing cut off."""
    return Column(header, overflow="fold")


@click.group()
def command() -> None:
    """The models here, and others that would suit this machine.

    Nothing is ever downloaded but what you name to `codespec models add`.
    """


@command.command("list", short_help="The models that are here.")
@json_option
def list_models(as_json: bool) -> None:
    """The bundled pair, models added, files in use beside these, drafts distilled."""
    in_use = _in_use()
    rows = [_row(*known, in_use) for known in _known(in_use)]
    target = load_settings().model.target
    if scheme_of(target):
        origin = backend_of(target).name
        rows.append(
            {
                "name": target,
                "path": target,
                "origin": origin,
                "bytes": 0,
                "exists": True,
                "default": "target",
            }
        )
    distilled: list[dict[str, Any]] = [
        {
            "target": r.target,
            "workspace": r.workspace,
            "path": str(at / r.file),
            "acceptance": r.after.acceptance,
            "used": r.pays and r.is_current,
            "outdated": not r.is_current,
            "gone": next((p for p in (r.workspace, r.target_path) if not exists(p)), ""),
        }
        for at, r in drafts.every()
    ]
    leftovers: list[dict[str, Any]] = [
        {"path": str(path), "bytes": path.stat().st_size, "origin": url, "origin_is_whole": whole}
        for path, url, whole in library.leftovers()
    ]
    if as_json:
        print_json({"models": rows, "distilled": distilled, "leftovers": leftovers})
        return
    table = Table(*map(_folded, ("name", "size", "default", "from")), box=None)
    for row in rows:
        size = f"{row['bytes'] / 1e6:,.1f} MB" if row["exists"] else "missing"
        table.add_row(escape(row["name"]), size, row["default"], escape(row["origin"]))
    Console().print(table)
    for row in distilled:
        why_not = (
            drafts.OUTDATED if row["outdated"] else "no better than the draft model without it"
        )
        use = "" if row["used"] else f", not used: {why_not}"
        click.echo(
            f"distilled from {row['target']} for {row['workspace']}: "
            f"{row['acceptance']:.0%} accepted{use}"
        )
        if row["gone"]:
            click.echo(f"  of no use, {row['gone']} is gone; delete it: {Path(row['path']).parent}")
    for row in leftovers:
        is_part = row["path"].endswith(".part")
        what = "unfinished, or on its way" if is_part else "on no list"
        click.echo(f"{what}: {row['path']}, {row['bytes'] / 1e6:,.1f} MB")
        source = row["origin"] if is_part else row["path"]
        more = f", or: codespec models add {shlex.quote(source)}" if source else ""
        if more and is_part and not row["origin_is_whole"]:
            more += " with the rest of that address, which is not written down"
        click.echo(f"  delete it{more}")


def _in_use() -> dict[str, Path]:
    """The files of the settings' target and, if that does not draft for itself, draft model."""
    settings = load_settings()
    if scheme_of(settings.model.target):
        return {}
    target, small = target_path(settings.model), draft_path(settings.model)
    files = {"target": target, "draft": small}
    may_draft_itself = settings.model.target and settings.may_draft_itself
    if may_draft_itself and targets_of(target).drafts_itself(str(target)):
        del files["draft"]
    return {role: path.absolute() for role, path in files.items() if path is not None}


def _roles(path: Path, in_use: dict[str, Path]) -> list[str]:
    return [role for role, used in in_use.items() if realpath(used) == realpath(path)]


def _known(in_use: dict[str, Path]) -> list[tuple[str, Path, str]]:
    """(name, file, origin). A file that is on no list goes by its path, which can be given for a
    name everywhere.

    Raises: ConfigError where the list cannot be read.
    """
    found = [(Path(n).stem, bundled(n), "bundled") for n in (BUNDLED_TARGET, BUNDLED_DRAFT)]
    found += [
        (name, Path(a.path), a.url or "local file")
        for name, a in sorted(library.read_list().items())
    ]
    listed = {realpath(path) for _, path, _ in found}
    others = dict.fromkeys(path for path in in_use.values() if realpath(path) not in listed)
    return [*found, *((str(path), path, "local file") for path in others)]


def _row(name: str, path: Path, origin: str, in_use: dict[str, Path]) -> dict[str, Any]:
    is_whole = all(Path(part).is_file() for part in parts(str(path)))
    return {
        "name": name,
        "path": str(path),
        "origin": origin,
        "bytes": size_of(path) if is_whole else 0,
        "exists": is_whole,
        "default": next(iter(_roles(path, in_use)), ""),
    }


@command.command(short_help="What a model is, needs, and does here.")
@click.argument("model")
@click.option("--no-speed", is_flag=True, help="Do not measure its speed.")
@json_option
def show(model: str, no_speed: bool, as_json: bool) -> None:
    """What a model (a name from the list, or a file) is, needs, and does here."""
    from codespec.cli.models_show import describe, in_words

    where = model if scheme_of(model) else str(library.find(model))
    facts = describe(where, load_settings(), measure=not no_speed)
    if as_json:
        print_json(facts)
        return
    table = Table(Column(no_wrap=True), _folded(), show_header=False, box=None)
    for row in in_words(facts):
        table.add_row(*map(escape, row))
    Console().print(table)


@command.command(short_help="Add a model: a file, a URL, or a known name.")
@click.argument("source")
@click.option("--sha256", metavar="HEX", help="SHA-256 that the file must have.")
@json_option
def add(source: str, sha256: str | None, as_json: bool) -> None:
    """Add a model: a .gguf FILE, a URL of one, or a NAME that `codespec models recommend` lists,
    for download or as one that another program keeps here. Files stay where they are.

    A download that was interrupted goes on where it stopped; one that does not have the SHA-256
    you give, or the model hub states, is not kept, and a FILE that does not is not added.
    """
    entry = catalogue.by_name(source)
    path, name = library.given(source), ""
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
    elif source in catalogue.without_file():
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
    click.echo(f"use it: codespec models default {facts['name']}")


def _download(url: str, sha256: str | None) -> dict[str, Any]:
    """Of a model that is split, all files, whichever of them was named; the first one stands for
    it."""
    first, *others = download.every_file(url)
    library.name_for(library.folder() / download.file_name(first), first)  # before it is fetched
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


def _fetch(url: str, sha256: str | None, check: download.Check) -> download.Fetched:
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
                return download.fetch(url, library.folder(), sha256, on_progress, check)
        except KeyboardInterrupt:
            bar.stop()
            click.echo("stopped; the same command goes on, where the server lets it", err=True)
            raise


@command.command()
@click.argument("name")
@click.option("--keep-file", is_flag=True, help="Forget it, and leave its file where it is.")
def remove(name: str, keep_file: bool) -> None:
    """Forget a model. A file that was downloaded is deleted, one of your own never."""
    listed = library.find_listed(name)
    for role in _roles(listed, _in_use()) if listed else ():
        click.echo(_GO_BACK[role])
    files = library.remove(name)
    if keep_file or not files:
        click.echo(f"forgot {name}")
        return
    for file in files:
        file.unlink(missing_ok=True)
        click.echo(f"deleted {file}")


@command.command(short_help="Open code models, and which one suits this machine.")
@json_option
def recommend(as_json: bool) -> None:
    """Open code models, what they need, and which one suits this machine."""
    machine = hardware.found(uses_gpu=backend_of("").device() != "cpu")
    here = catalogue.tier_of(machine)
    choice = catalogue.recommended(here)
    tiers = {tier.name: catalogue.recommended(tier) for tier in catalogue.TIERS}
    listed = {realpath(a.path) for a in library.added().values()}
    kept = [f for f in elsewhere.found() if realpath(f.path) not in listed]
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
                    }
                    for e in catalogue.ENTRIES
                ],
            }
        )
        return
    rest = ("parameters", "needs", "licence", "suits")
    table = Table(Column("model", no_wrap=True), *map(_folded, rest), box=None)
    for e in catalogue.ENTRIES:
        suits = ", ".join(name for name, best in tiers.items() if best is e)
        needs = f"{e.memory_bytes / 1e9:.1f} GB"
        table.add_row(e.name, f"{e.n_params_b:.1f} B", needs, e.licence, suits)
    Console().print(table)
    others = ", ".join(catalogue.without_file())
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


@command.command(short_help="Choose the model to complete with.")
@click.argument("model", required=False)
@click.option("--draft", metavar="MODEL", help='Its draft model; "auto", or "none".')
def default(model: str | None, draft: str | None) -> None:
    """Make MODEL (a name from the list, a file, or "bundled") the one to complete with."""
    from codespec.backends.base import TargetBackend
    from codespec.engine.drafts import check_draft

    if model is None and draft is None:
        raise click.UsageError("name a MODEL, or --draft, or both")
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
            values[key] = value if value in library.BUNDLED else library.in_full(path)
    settings = msgspec.structs.replace(settings, **values)
    small = draft_path(settings)
    if small is not None and isinstance(backend_of(target_of(settings)), TargetBackend):
        # Before anything is written: with a pair that does not match no model starts.
        check_draft(target_of(settings), small)
    for key, setting in values.items():
        file = library.set_default(key, setting)
        click.echo(f'model.{key} = "{setting}" in {file}')
        if (origin := origins().get(("model", key), str(file))) != str(file):
            click.echo(f"  but {origin} says otherwise, and comes first", err=True)
    click.echo("editors take it by themselves, each model with a daemon of its own;")
    click.echo("that of the last one ends after a while, or at once: codespec daemon stop --all")
