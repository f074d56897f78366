"""Programs of others, git or nvidia-smi: looked for here, and nowhere else.

A repository may hold a program of any name. So a program comes from folders of the PATH that are
named in full (a relative part, and an empty one, is the working folder), and on no way that leads
through a workspace: the folder, the program, and what either is a link to.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

_MARKS = (".git", ".hg", ".jj", ".svn", ".codespec.toml")
"""A folder that has one of these is a workspace."""
_MAX_LINKS = 40

_named: set[str] = set()


def never_below(workspace: str | os.PathLike[str]) -> None:
    """From now on, nothing of this workspace is run, wherever this process works."""
    _named.add(os.path.abspath(workspace))


def find(name: str) -> str | None:
    """The whole path of a program; None where there is none that may be run.

    name: without a folder. Raises: ValueError for one with a folder.
    """
    if os.path.dirname(name):
        raise ValueError(f"{name} is a path, not a name")
    workspaces = _workspaces()
    for folder in _folders(workspaces):
        for each in _with_extensions(name):
            path = os.path.join(folder, each)
            if _can_be_run(path) and not _leads_through(path, workspaces):
                return path
    return None


def command(name: str, *arguments: str) -> list[str]:
    """Command that runs the program of this name, or the one at a whole path that the caller knows.

    Raises: FileNotFoundError.
    """
    program = name if os.path.isabs(name) else find(name)
    if program is None:
        raise FileNotFoundError(f"there is no program {name}")
    return [program, *arguments]


def path() -> str:
    """The PATH without what programs may not come from, for the environment of those that look for
    others by themselves."""
    return os.pathsep.join(_folders(_workspaces()))


def _folders(workspaces: list[os.stat_result]) -> list[str]:
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    whole = [part for part in parts if os.path.isabs(part)]
    return [part for part in whole if not _leads_through(part, workspaces)]


def _workspaces() -> list[os.stat_result]:
    """Those that were named, the working folder, and what workspaces that lies in. Neither the
    whole disk nor the home folder, which hold the user's own programs."""
    folders = list(_named)
    try:
        here = os.getcwd()
    except FileNotFoundError:
        pass
    else:
        above = [str(parent) for parent in Path(here).parents]
        marked = [f for f in above if any(os.path.lexists(os.path.join(f, m)) for m in _MARKS)]
        folders += [here, *marked]
    found = [seen for folder in folders if (seen := _seen(folder)) is not None]
    own = [seen for seen in (_seen(os.path.expanduser("~")), _seen(os.sep)) if seen is not None]
    return [one for one in found if not any(os.path.samestat(one, other) for other in own)]


def _leads_through(path: str, workspaces: list[os.stat_result]) -> bool:
    """Compared by what folders are: names may differ by case, or by a mount."""
    visited = (seen for place in _way(path) if (seen := _seen(place)) is not None)
    return any(os.path.samestat(seen, one) for seen in visited for one in workspaces)


def _way(path: str) -> Iterator[str]:
    """Each folder and link that the system comes by when it follows a whole path."""
    at, rest = os.path.splitdrive(path)[0] + os.sep, _parts(path)
    n_links = 0
    while rest and n_links < _MAX_LINKS:
        name = rest.pop()
        at = os.path.dirname(at) if name == os.pardir else os.path.join(at, name)
        yield at
        try:
            target = os.readlink(at)
        except (OSError, ValueError):
            continue
        n_links += 1
        is_whole = os.path.isabs(target)
        at = os.path.splitdrive(target)[0] + os.sep if is_whole else os.path.dirname(at)
        rest += _parts(target)


def _parts(path: str) -> list[str]:
    """The last one first."""
    names = os.path.splitdrive(path)[1].replace(os.altsep or os.sep, os.sep).split(os.sep)
    return [name for name in reversed(names) if name not in ("", os.curdir)]


def _seen(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _can_be_run(path: str) -> bool:
    seen = _seen(path)
    return seen is not None and stat.S_ISREG(seen.st_mode) and os.access(path, os.X_OK)


def _with_extensions(name: str) -> list[str]:
    if sys.platform != "win32":
        return [name]
    known = [e.lower() for e in os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";") if e]
    return [name] if name.lower().endswith(tuple(known)) else [name + e for e in known]
