"""Safe lookup of other programs, such as git or nvidia-smi; no other code looks for programs.

A repository may hold a program of any name. So a program is run only from absolute folders of the
PATH (a relative or empty part means the working folder), and never where the path or one of its
links leads through a workspace.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

_MARKS = (".git", ".hg", ".jj", ".svn", ".codespec.toml")
"""Names of entries that make a folder a workspace."""
_MAX_LINKS = 40

_named: set[str] = set()


def never_below(workspace: str | os.PathLike[str]) -> None:
    """Never run a program in this workspace from now on, whatever the working folder is."""
    _named.add(os.path.abspath(workspace))


def find(name: str) -> str | None:
    """Absolute path of a program; None where there is none that may be run.

    name: the program's name. Raises: ValueError for a name with a folder.
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
    """Command that runs the program of this name, or the one at an absolute path.

    Raises: FileNotFoundError.
    """
    program = name if os.path.isabs(name) else find(name)
    if program is None:
        raise FileNotFoundError(f"there is no program {name}")
    return [program, *arguments]


def path() -> str:
    """The PATH without folders that programs may not come from, for the environment of programs
    that start others by themselves."""
    return os.pathsep.join(_folders(_workspaces()))


def _folders(workspaces: list[os.stat_result]) -> list[str]:
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    whole = [part for part in parts if os.path.isabs(part)]
    return [part for part in whole if not _leads_through(part, workspaces)]


def _workspaces() -> list[os.stat_result]:
    """The named workspaces, the working folder, and the workspaces around it; without the root and
    the home folder, which hold the user's own programs."""
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
    """True if a path leads through a workspace. Compares inodes: names may differ by case or
    mount."""
    visited = (seen for place in _way(path) if (seen := _seen(place)) is not None)
    return any(os.path.samestat(seen, one) for seen in visited for one in workspaces)


def _way(path: str) -> Iterator[str]:
    """Each folder and link that the system visits when it resolves an absolute path."""
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
    """Names of a path's parts, the last one first."""
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
