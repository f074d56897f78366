"""Which files are none of our business: ignored by the user, secret, or not the project's own.

The answer is the same for the indexer and for files open in an editor, so that an excluded file
is never indexed, prompted with, or drafted from. Four kinds of rules, of which a repository can
switch off the last only:

- folders of tools and installed packages (`.git`, `node_modules`, virtual environments, caches);
- files that are nothing but secrets, by their names (`codespec.secrets`);
- what the user's settings and the workspace's `.codespec.toml` exclude;
- ignore files: .codespecignore over .ignore over git's own (.gitignore, .git/info/exclude, the
  user's global file). Within each kind the file nearest to the path decides, as in git.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codespec.errors import without_controls
from codespec.index.gitfiles import (
    MAX_BYTES,
    ignores_case,
    info_exclude,
    read_regular,
    repository_above,
    user_files,
)
from codespec.index.gitignore import RuleSet
from codespec.index.restrictions import RESTRICTIONS_FILE, parse_restrictions
from codespec.secrets import SECRET_FOLDERS, secret_name

_MAX_WHY = 300
"""Characters of a reason, which may quote what a repository says."""

MAX_DEPTH = 100
"""Folders below the workspace root; what lies deeper is not looked at."""

TOOL_FOLDERS = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".bzr",
        ".jj",
        "CVS",
        "node_modules",
        "bower_components",
        "jspm_packages",
        "__pycache__",
        ".venv",
        "venv",
        ".virtualenv",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".eggs",
        ".gradle",
        ".terraform",
        ".next",
        ".nuxt",
        ".svelte-kit",
        ".parcel-cache",
        ".turbo",
        ".yarn",
        ".cache",
        ".idea",
        ".vs",
        ".ipynb_checkpoints",
        ".direnv",
        ".bundle",
        ".dart_tool",
        ".stack-work",
        "site-packages",
    ]
)
# A file with one of these in a folder says that the folder's contents are a tool's.
_FOLDER_MARKERS = ("pyvenv.cfg", "CACHEDIR.TAG")


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """Rules of one file. `depth`: how many components of a path to drop for them."""

    rules: RuleSet
    depth: int
    label: str


@dataclass(frozen=True, slots=True)
class _Limits:
    """What the settings and each `.codespec.toml` from the top down ask for in a folder."""

    why_off: str = ""
    disabled_languages: tuple[str, ...] = ()
    firm: tuple[_IgnoreFile, ...] = ()

    def below(self, folder: str, depth: int) -> _Limits:
        """Those in a folder within; all that was asked for above it holds there, too."""
        if self.why_off:
            return self
        data = read_regular(os.path.join(folder, RESTRICTIONS_FILE), follow=False)
        if data is None:
            return self
        found = parse_restrictions(data)
        above = [file.rules for file in self.firm]
        rules = _IgnoreFile(RuleSet(found.exclude, above=above), depth, RESTRICTIONS_FILE)
        return _Limits(
            found.why_off,
            self.disabled_languages + found.disabled_languages,
            (*self.firm, rules),
        )


_Chain = tuple[tuple[_IgnoreFile, ...], ...]
_FAMILIES = (".codespecignore", ".ignore", ".gitignore")
_GIT = _FAMILIES.index(".gitignore")
IGNORE_FILES = frozenset((*_FAMILIES, *_FOLDER_MARKERS, RESTRICTIONS_FILE))
"""Names of files that decide whether the files around and below them may be used."""


class IgnoreRules:
    """A snapshot of the rules of one workspace: each ignore file is read once, when first needed.
    Make a new one when such files may have changed; it costs a few file reads. Not thread-safe.
    """

    def __init__(self, root: str | os.PathLike[str], exclude: Sequence[str] = ()) -> None:
        """exclude: patterns of the user's settings, relative to the root."""
        self.root = os.path.realpath(root)
        top = repository_above(self.root)
        self._above = Path(self.root).relative_to(top).parts
        self._ignore_case = ignores_case(top)
        self._chains: dict[tuple[str, ...], _Chain] = {}
        chain: _Chain = ((),) * len(_FAMILIES)
        *_, user = user_files()
        chain = _add(chain, _GIT, self._read_rules(user, chain), 0, user)
        firm = (_IgnoreFile(RuleSet(exclude), len(self._above), "the settings"),)
        limits = _Limits(firm=firm)
        for depth in range(len(self._above) + 1):
            folder = os.path.join(top, *self._above[:depth])
            limits = limits.below(folder, depth)
            chain = self._extend(chain, folder, depth)
        self._chains[()] = chain
        self._limits: dict[tuple[str, ...], _Limits] = {(): limits}

    def why_excluded(self, path: str | os.PathLike[str], is_dir: bool | None = None) -> str:
        """Why this path must not be used, in words; "" when it may be.

        path: absolute or relative to the root; need not exist (an unsaved buffer). Both the path
            as written and what its symbolic links lead to must be allowed.
        is_dir: None: look.
        """
        written = os.path.normpath(os.path.join(self.root, os.fspath(path)))
        real = os.path.realpath(written)
        if is_dir is None:
            is_dir = os.path.isdir(real)
        parent = os.path.realpath(os.path.dirname(written))
        for candidate in dict.fromkeys((os.path.join(parent, os.path.basename(written)), real)):
            if why := self._why(candidate, is_dir):
                return _shown(why)
        return ""

    def _why(self, path: str, is_dir: bool) -> str:
        if not is_dir and secret_name(path.replace(os.sep, "/")):
            return "a file that holds secrets by its name"
        inside = path == self.root or path.startswith(os.path.join(self.root, ""))
        if not inside:
            return "outside the workspace"
        parts = tuple(p for p in path[len(self.root) :].split(os.sep) if p)
        if len(parts) > MAX_DEPTH:
            return f"more than {MAX_DEPTH} folders deep"
        for n in range(1, len(parts) + 1):
            if why := self.entry(parts[:n], is_dir if n == len(parts) else True):
                return why
        return ""

    def entry(self, parts: tuple[str, ...], is_dir: bool) -> str:
        """As `why_excluded`, for components below the root whose parents are known to be allowed,
        without a look at links."""
        limits = self._limits_of(parts[:-1])
        if limits.why_off:
            return limits.why_off
        name = parts[-1]
        if is_dir:
            if name in TOOL_FOLDERS or name.endswith(".egg-info"):
                return f"in a folder that is never indexed: {name}"
            if name in SECRET_FOLDERS:
                return f"in a folder that holds secrets: {name}"
            folder = os.path.join(self.root, *parts)
            if any(os.path.lexists(os.path.join(folder, m)) for m in _FOLDER_MARKERS):
                return f"in a virtual environment or cache: {name}"
        elif secret_name("/".join(parts)):
            return "a file that holds secrets by its name"
        path = self._above + parts
        for file in limits.firm:
            rule = file.rules.decide(path[file.depth :], is_dir)
            if rule is not None and not rule.negated:
                return f"excluded by {file.label}: {rule.text}"
        for family in self._chain(parts[:-1]):
            for file in reversed(family):
                rule = file.rules.decide(path[file.depth :], is_dir)
                if rule is not None:
                    if rule.negated:
                        return ""
                    return f"ignored by {file.label}: {rule.text}"
        return ""

    def _limits_of(self, folder: tuple[str, ...]) -> _Limits:
        limits = self._limits.get(folder)
        if limits is None:
            above = self._limits_of(folder[:-1])
            depth = len(self._above) + len(folder)
            limits = above.below(os.path.join(self.root, *folder), depth)
            self._limits[folder] = limits
        return limits

    def why_disabled(self, language_id: str, path: str | os.PathLike[str] = "") -> str:
        """Why documents of this language, file or not, get no completions; "" when they do.

        path: of the document, absolute; "" for one that is no file.
        """
        below = os.path.relpath(os.path.realpath(path), self.root) if path else ""
        parts = tuple(below.split(os.sep)[:-1])
        limits = self._limits_of(() if os.pardir in parts[:1] else parts[:MAX_DEPTH])
        if limits.why_off or language_id not in limits.disabled_languages:
            return _shown(limits.why_off)
        return f"switched off for {language_id} in {RESTRICTIONS_FILE}"

    def _chain(self, folder: tuple[str, ...]) -> _Chain:
        chain = self._chains.get(folder)
        if chain is None:
            chain = self._chain(folder[:-1])
            depth = len(self._above) + len(folder)
            chain = self._extend(chain, os.path.join(self.root, *folder), depth)
            self._chains[folder] = chain
        return chain

    def _extend(self, chain: _Chain, folder: str, depth: int) -> _Chain:
        label = os.path.relpath(folder, self.root)
        exclude = info_exclude(folder)
        if exclude:
            rules = self._read_rules(exclude, chain)
            chain = _add(chain, _GIT, rules, depth, ".git/info/exclude")
        for i, name in enumerate(_FAMILIES):
            # As git: a link in a work tree must not make us read files elsewhere.
            rules = self._read_rules(os.path.join(folder, name), chain, follow=False)
            chain = _add(chain, i, rules, depth, os.path.normpath(os.path.join(label, name)))
        return chain

    def _read_rules(self, path: str, above: _Chain, follow: bool = True) -> RuleSet | None:
        """above: the rules that hold there, too. None for a file that is not there."""
        data = read_regular(path, follow)
        if data is None:
            return None
        is_whole = len(data) < MAX_BYTES
        known = [file.rules for family in above for file in family]
        return RuleSet(os.fsdecode(data).split("\n"), is_whole, self._ignore_case, known)


def _shown(why: str) -> str:
    """A line for a status or a terminal."""
    why = without_controls(why[: 2 * _MAX_WHY])
    return why if len(why) <= _MAX_WHY else f"{why[:_MAX_WHY]}…"


def _add(chain: _Chain, family: int, rules: RuleSet | None, depth: int, label: str) -> _Chain:
    if not rules:
        return chain
    files = (*chain[family], _IgnoreFile(rules, depth, label))
    return (*chain[:family], files, *chain[family + 1 :])
