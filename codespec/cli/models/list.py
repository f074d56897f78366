"""`codespec models list`"""

from __future__ import annotations

import shlex
from os.path import exists, realpath
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from codespec.backends.registry import backend_of, scheme_of
from codespec.cli import json_option, print_json
from codespec.cli.models.columns import folded
from codespec.cli.models.in_use import files_in_use, roles
from codespec.config import load_settings
from codespec.models import distilled, library
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.models.split import parts, size_of


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List the bundled pair, models added, files in use beside these, drafts distilled."""
    in_use = files_in_use()
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
    drafts: list[dict[str, Any]] = [
        {
            "target": r.target,
            "workspace": r.workspace,
            "path": str(at / r.file),
            "acceptance": r.after.acceptance,
            "used": r.pays and r.is_current,
            "outdated": not r.is_current,
            "gone": next((p for p in (r.workspace, r.target_path) if not exists(p)), ""),
        }
        for at, r in distilled.all_records()
    ]
    leftovers: list[dict[str, Any]] = [
        {"path": str(path), "bytes": path.stat().st_size, "origin": url, "origin_is_whole": whole}
        for path, url, whole in library.leftovers()
    ]
    if as_json:
        print_json({"models": rows, "distilled": drafts, "leftovers": leftovers})
        return
    table = Table(*map(folded, ("name", "size", "default", "from")), box=None)
    for row in rows:
        size = f"{row['bytes'] / 1e6:,.1f} MB" if row["bytes"] else ""
        size = size if row["exists"] else "missing"
        table.add_row(escape(row["name"]), size, row["default"], escape(row["origin"]))
    Console().print(table)
    for row in drafts:
        why_not = (
            distilled.OUTDATED if row["outdated"] else "no better than the draft model without it"
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


def _known(in_use: dict[str, Path]) -> list[tuple[str, Path, str]]:
    """(name, file, origin) of each model. A file that is on no list goes by its path, which can be
    given for a name everywhere.

    Raises: ConfigError if the list cannot be read.
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
        "default": next(iter(roles(path, in_use)), ""),
    }
