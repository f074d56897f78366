"""Which repositories rows are of: of one name there may be several."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from .history import ask_git
from .results import Row

_FOLDER = "folder "


def origin(folder: Path) -> str:
    """The same for every clone, whatever its name and commit: the first commit of its history, and
    what part of the repository the folder is. Without a history, a hash of the folder's path, as
    rows name no user."""
    first = ask_git(folder, "rev-list", "--max-parents=0", "HEAD").split()
    if not first:
        path = str(folder.resolve()).encode("utf-8", "surrogateescape")
        return _FOLDER + hashlib.sha256(path).hexdigest()[:12]
    part = ask_git(folder, "rev-parse", "--show-prefix").strip().rstrip("/")
    return f"{first[-1][:12]} {part}".rstrip()


def told_apart(*sides: Sequence[Row]) -> list[list[Row]]:
    """The rows of each side, where a name that one side has for several repositories is followed
    by the row's own; all others as they are."""
    several = {name for side in sides for name, of in _named(side).items() if len(of) > 1}

    def full(row: Row) -> Row:
        of = _origins(row)
        name = row.get("repository")
        return {**row, "repository": f"{name} ({of})"} if of and name in several else row

    return [[full(row) for row in side] for side in sides]


def differ(a: Sequence[Row], b: Sequence[Row]) -> list[str]:
    """Names that both sides have, each for another repository, as far as histories tell."""
    ours, theirs = _named(a), _named(b)
    return [
        name
        for name, of in ours.items()
        if theirs.get(name, of).isdisjoint(of)
        and not any(_FOLDER in each for each in (*of, *theirs[name]))
    ]


def _named(rows: Sequence[Row]) -> dict[str, set[str]]:
    out: dict[str, set[str]] = {}
    for row in rows:
        name, of = row.get("repository"), _origins(row)
        if isinstance(name, str) and of:
            out.setdefault(name, set()).add(of)
    return out


def _origins(row: Row) -> str:
    """ "" where the row does not say."""
    of = row.get("origin")
    return ", ".join(map(str, cast("list[object]", of))) if isinstance(of, list) else ""
