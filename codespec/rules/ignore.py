"""Rules on files that codespec must not use: ignored by the user, secret, or not the project's own.

The answer is the same for the indexer and for files open in an editor, so that an excluded file is
never indexed, prompted with, or drafted from. Four kinds of rules, of which a repository can switch
off the last only:

- folders of tools and installed packages (`.git`, `node_modules`, virtual environments, caches);
- files that are nothing but secrets, by their names (`codespec.rules.secrets`);
- what the user's settings and the workspace's `.codespec.toml` exclude;
- ignore files: .codespecignore over .ignore over git's own (.gitignore, .git/info/exclude, the
  user's global file). Within each kind the file nearest to the path decides, as in git.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codespec.restraint import (
    NO_EDIT_RESTRAINT,
    NO_RESTRAINT,
    EditRestraint,
    Restraint,
    strictest,
    strictest_edits,
)
from codespec.rules.exclusion import Exclusion, ExclusionRule, text_of
from codespec.rules.gitfiles import (
    MAX_BYTES,
    ignores_case,
    info_exclude,
    read_regular,
    repository_above,
    user_files,
)
from codespec.rules.gitignore import RuleSet
from codespec.rules.restrictions import RESTRICTIONS_FILE, parse_restrictions
from codespec.rules.secrets import SECRET_FOLDERS, secret_name
from codespec.system.files import relative

MAX_DEPTH = 100
"""Most folders below the workspace's root; anything deeper is not looked at."""

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
    """Rules of one ignore file. depth: number of components of a path that lead to its folder.
    label: its name for people."""

    rules: RuleSet
    depth: int
    label: str


@dataclass(frozen=True, slots=True)
class _Limits:
    """Restrictions in a folder: those of the settings and of each `.codespec.toml` from the top
    down."""

    why_off: str = ""
    disabled_languages: tuple[str, ...] = ()
    firm: tuple[_IgnoreFile, ...] = ()
    restraint: Restraint = NO_RESTRAINT
    edits: EditRestraint = NO_EDIT_RESTRAINT

    def below(self, folder: str, depth: int) -> _Limits:
        """Restrictions in a folder within; all restrictions above it apply there, too."""
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
            strictest(self.restraint, found.restraint),
            strictest_edits(self.edits, found.edits),
        )


_Chain = tuple[tuple[_IgnoreFile, ...], ...]
_FAMILIES = (".codespecignore", ".ignore", ".gitignore")
_GIT = _FAMILIES.index(".gitignore")
IGNORE_FILES = frozenset((*_FAMILIES, *_FOLDER_MARKERS, RESTRICTIONS_FILE))
"""Names of files that decide if the files around and below them may be used."""


class IgnoreRules:
    """A snapshot of the rules of one workspace: each ignore file is read once, when first needed.
    Make a new one when such files may have changed; it costs a few file reads. Not thread-safe."""

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
        """The reason of `exclusion`, as text for people; "" if the path may be used."""
        return text_of(self.exclusion(path, is_dir))

    def exclusion(
        self, path: str | os.PathLike[str], is_dir: bool | None = None
    ) -> Exclusion | None:
        """The rule that excludes this path; None if it may be used.

        path: absolute or relative to the root; need not exist (an unsaved buffer). Both the path as
            written and what its symbolic links lead to must be allowed.
        is_dir: None: look at the disk.
        """
        written = os.path.normpath(os.path.join(self.root, os.fspath(path)))
        real = os.path.realpath(written)
        if is_dir is None:
            is_dir = os.path.isdir(real)
        parent = os.path.realpath(os.path.dirname(written))
        for candidate in dict.fromkeys((os.path.join(parent, os.path.basename(written)), real)):
            if found := self._of_path(candidate, is_dir):
                return found
        return None

    def _of_path(self, path: str, is_dir: bool) -> Exclusion | None:
        if not is_dir and secret_name(path.replace(os.sep, "/")):
            return Exclusion(ExclusionRule.SECRET_NAME)
        inside = path == self.root or path.startswith(os.path.join(self.root, ""))
        if not inside:
            return Exclusion(ExclusionRule.OUTSIDE)
        parts = tuple(p for p in path[len(self.root) :].split(os.sep) if p)
        if len(parts) > MAX_DEPTH:
            return Exclusion(ExclusionRule.TOO_DEEP, str(MAX_DEPTH))
        for n in range(1, len(parts) + 1):
            if found := self.entry(parts[:n], is_dir if n == len(parts) else True):
                return found
        return None

    def entry(self, parts: tuple[str, ...], is_dir: bool) -> Exclusion | None:
        """The rule of `exclusion` for components below the root whose parents are known to be
        allowed. Links are not looked at."""
        limits = self._limits_of(parts[:-1])
        if limits.why_off:
            return Exclusion(ExclusionRule.RESTRICTED, limits.why_off)
        name = parts[-1]
        if is_dir:
            if name in TOOL_FOLDERS or name.endswith(".egg-info"):
                return Exclusion(ExclusionRule.TOOL_FOLDER, name)
            if name in SECRET_FOLDERS:
                return Exclusion(ExclusionRule.SECRET_FOLDER, name)
            folder = os.path.join(self.root, *parts)
            if any(os.path.lexists(os.path.join(folder, m)) for m in _FOLDER_MARKERS):
                return Exclusion(ExclusionRule.CACHE_FOLDER, name)
        elif secret_name("/".join(parts)):
            return Exclusion(ExclusionRule.SECRET_NAME)
        path = self._above + parts
        for file in limits.firm:
            rule = file.rules.decide(path[file.depth :], is_dir)
            if rule is not None and not rule.negated:
                return Exclusion(ExclusionRule.EXCLUDED, f"{file.label}: {rule.text}")
        for family in self._chain(parts[:-1]):
            for file in reversed(family):
                rule = file.rules.decide(path[file.depth :], is_dir)
                if rule is not None:
                    if rule.negated:
                        return None
                    return Exclusion(ExclusionRule.IGNORED, f"{file.label}: {rule.text}")
        return None

    def _limits_of(self, folder: tuple[str, ...]) -> _Limits:
        limits = self._limits.get(folder)
        if limits is None:
            above = self._limits_of(folder[:-1])
            depth = len(self._above) + len(folder)
            limits = above.below(os.path.join(self.root, *folder), depth)
            self._limits[folder] = limits
        return limits

    def language_exclusion(
        self, language_id: str, path: str | os.PathLike[str] = ""
    ) -> Exclusion | None:
        """The rule against completions in documents of this language, file or not; None if there
        is none.

        path: of the document, absolute; "" for one that is no file.
        """
        limits = self._limits_at(path)
        if limits.why_off:
            return Exclusion(ExclusionRule.RESTRICTED, limits.why_off)
        if language_id not in limits.disabled_languages:
            return None
        return Exclusion(ExclusionRule.LANGUAGE_OFF, f"{language_id} in {RESTRICTIONS_FILE}")

    def restraint(self, path: str | os.PathLike[str] = "") -> Restraint:
        """The restraint that the workspace asks for in a document, as in `language_exclusion`."""
        found = self._limits_at(path).restraint
        return NO_RESTRAINT if found == NO_RESTRAINT else found

    def edit_restraint(self, path: str | os.PathLike[str] = "") -> EditRestraint:
        """The restraint that the workspace asks for of next edits, as in `language_exclusion`."""
        return self._limits_at(path).edits

    def _limits_at(self, path: str | os.PathLike[str]) -> _Limits:
        below = relative(os.path.realpath(path), self.root) if path else ""
        parts = tuple(below.split(os.sep)[:-1])
        return self._limits_of(() if os.pardir in parts[:1] else parts[:MAX_DEPTH])

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
            # As in git, a link in a work tree must not lead to files elsewhere.
            rules = self._read_rules(os.path.join(folder, name), chain, follow=False)
            chain = _add(chain, i, rules, depth, os.path.normpath(os.path.join(label, name)))
        return chain

    def _read_rules(self, path: str, above: _Chain, follow: bool = True) -> RuleSet | None:
        """Rules of one ignore file; None if it does not exist. above: rules of other files that
        apply there, too."""
        data = read_regular(path, follow)
        if data is None:
            return None
        is_whole = len(data) < MAX_BYTES
        known = [file.rules for family in above for file in family]
        return RuleSet(os.fsdecode(data).split("\n"), is_whole, self._ignore_case, known)


def _add(chain: _Chain, family: int, rules: RuleSet | None, depth: int, label: str) -> _Chain:
    if not rules:
        return chain
    files = (*chain[family], _IgnoreFile(rules, depth, label))
    return (*chain[:family], files, *chain[family + 1 :])
