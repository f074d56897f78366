"""Files of git that say what it ignores besides the ignore files of a folder: where they are, and
what its settings say. A repository may hold anything under their names.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

MAX_BYTES = 1 << 20
"""Of a file; of a longer one the beginning is read."""
MAX_SETTINGS_FILES = 32
"""Of git, included ones among them."""

# Of git's settings: [section] or [section "of a name"], which is another; a value, up to a comment;
# what of it is not meant.
_SECTION = re.compile(r"""\s*\[\s*([-.\w]+(?:\s*"(?:[^"\\]|\\.)*")?)\s*\]""")
_VALUE = re.compile(r"""\s*((?:"(?:[^"\\]|\\.)*"|\\.|[^"\\#;])+)""")
_QUOTES = re.compile(r'\\(.)|"')


def read_regular(path: str, follow: bool = True) -> bytes | None:
    """A repository may hold a pipe or a device under the name of an ignore file: never wait."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with os.fdopen(os.dup(fd), "rb") as f:
            return f.read(MAX_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)


def repository_above(root: str) -> str:
    """The folder of the enclosing git repository, or the root itself."""
    folder = root
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return root
        folder = parent


def info_exclude(folder: str) -> str:
    """Path of the repository's info/exclude when `folder` is the top of a repository."""
    git = _git_folder(folder)
    return os.path.join(git, "info", "exclude") if git else ""


def _git_folder(folder: str) -> str:
    git = os.path.join(folder, ".git")
    if os.path.isdir(git):
        return git
    data = read_regular(git)  # a linked work tree: "gitdir: <repository>/.git/worktrees/<name>"
    if data is None or not data.startswith(b"gitdir:"):
        return ""
    git = os.path.join(folder, os.fsdecode(data[len(b"gitdir:") :].strip()))
    common = read_regular(os.path.join(git, "commondir"))
    return git if common is None else os.path.join(git, os.fsdecode(common.strip()))


def ignores_case(top: str) -> bool:
    """As git found when the repository was made: on macOS and Windows."""
    git = _git_folder(top)
    said = _settings_in(os.path.join(git, "config"), None) if git else {}
    return said.get("core.ignorecase", "").lower() in ("true", "yes", "on", "1")


def user_files() -> list[str]:
    """Files that decide what the user has git ignore everywhere: git's settings, last the ignore
    file, which is at git's default place where they do not name one."""
    home = Path.home()
    base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    asked: list[str] = []
    # The first comes first in git, too.
    said = [_settings_in(str(file), asked) for file in (home / ".gitconfig", base / "config")]
    found = (os.path.expanduser(settings.get("core.excludesfile", "")) for settings in said)
    return [*asked, next(filter(None, found), str(base / "ignore"))]


def _settings_in(file: str, asked: list[str] | None) -> dict[str, str]:
    """ "section.key" -> value, of a file of git's settings and of those that it includes on no
    condition. asked: gets each of these files; None: others are not included."""
    if asked is not None:
        asked.append(file)
        if len(asked) > MAX_SETTINGS_FILES:
            return {}
    found: dict[str, str] = {}
    section = ""
    for line in os.fsdecode(read_regular(file) or b"").split("\n"):
        head = _SECTION.match(line)
        if head is not None:
            section = head[1].lower()
        key, _, value = line[head.end() if head else 0 :].partition("=")
        said = _VALUE.match(value)
        if said is None:
            continue
        name, text = f"{section}.{key.strip().lower()}", _QUOTES.sub(r"\1", said[1].rstrip())
        found[name] = text
        if name == "include.path" and asked is not None:
            path = os.path.join(os.path.dirname(file), os.path.expanduser(text))
            found |= _settings_in(path, asked)
    return found
