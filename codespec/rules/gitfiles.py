"""Files in which git says what it ignores, besides the ignore files of a folder, and who its user
is: where they are, and the settings in them. A repository may hold anything under their names."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

MAX_BYTES = 1 << 20
"""Most bytes read of a file; of a longer one the beginning is read."""
MAX_SETTINGS_FILES = 32
"""Most files of git's settings that are read, included ones among them."""

# Lines of git's settings: [section] or [section "of a name"], which is another section; a value, up
# to a comment; quotes and escapes in it.
_SECTION = re.compile(r"""\s*\[\s*([-.\w]+(?:\s*"(?:[^"\\]|\\.)*")?)\s*\]""")
_VALUE = re.compile(r"""\s*((?:"(?:[^"\\]|\\.)*"|\\.|[^"\\#;])+)""")
_QUOTES = re.compile(r'\\(.)|"')
_INCLUDED_ALWAYS = re.compile(r"include\.path")
_INCLUDED = re.compile(r"include(?:if.*)?\.path")
_USERS = ("user.name", "user.email", "author.name", "author.email", "committer.name")
_USERS_IN_ENVIRONMENT = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL")


def read_regular(path: str, follow: bool = True, n_bytes: int = MAX_BYTES) -> bytes | None:
    """The first `n_bytes` of a regular file; None for anything else. Never waits: a repository
    may hold a pipe or a device under the name of an ignore file. follow: follow a link."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with os.fdopen(os.dup(fd), "rb") as f:
            return f.read(n_bytes)
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
    """Path of the repository's info/exclude if `folder` is the top of a repository, else ""."""
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
    """True if git ignores case in this repository, as it found when the repository was made: on
    macOS and Windows."""
    git = _git_folder(top)
    said = _settings_in(os.path.join(git, "config"), None) if git else {}
    return said.get("core.ignorecase", "").lower() in ("true", "yes", "on", "1")


def user_files() -> list[str]:
    """Files that decide what the user has git ignore everywhere: git's settings, last the ignore
    file, which is at git's default place if the settings do not name one."""
    asked: list[str] = []
    # The first comes first in git, too.
    said = [_settings_in(file, asked) for file in _user_settings()]
    found = (os.path.expanduser(settings.get("core.excludesfile", "")) for settings in said)
    return [*asked, next(filter(None, found), str(_user_folder() / "ignore"))]


def _user_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git"


def _user_settings() -> tuple[str, str]:
    """Files of the user's own settings for git."""
    return str(Path.home() / ".gitconfig"), str(_user_folder() / "config")


def git_users(folder: str) -> list[str]:
    """Names and addresses that git knows its user by: in the user's settings, on any condition, and
    in those of the repository around `folder`, "" for none. No file that a repository names is
    read."""
    asked: list[str] = []
    said = [pair for file in _user_settings() for pair in _pairs_in(file, asked, _INCLUDED)]
    git = _git_folder(repository_above(folder)) if folder else ""
    if git:
        said += _pairs_in(os.path.join(git, "config"), None)
    found = [value for key, value in said if key in _USERS]
    return [*found, *filter(None, map(os.environ.get, _USERS_IN_ENVIRONMENT))]


def _settings_in(file: str, asked: list[str] | None) -> dict[str, str]:
    """ "section.key" -> value, from a file of git's settings and from those that it includes on no
    condition. asked: gets each of these files; None: others are not included."""
    return dict(_pairs_in(file, asked))


def _pairs_in(
    file: str, asked: list[str] | None, included: re.Pattern[str] = _INCLUDED_ALWAYS
) -> list[tuple[str, str]]:
    """`_settings_in`, in order, each as often as it is set. included: keys of the files that are
    included."""
    if asked is not None:
        asked.append(file)
        if len(asked) > MAX_SETTINGS_FILES:
            return []
    found: list[tuple[str, str]] = []
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
        found.append((name, text))
        if included.fullmatch(name) and asked is not None:
            path = os.path.join(os.path.dirname(file), os.path.expanduser(text))
            found += _pairs_in(path, asked, included)
    return found
