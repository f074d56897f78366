"""A Git history as a stream of edits to write again: what a programmer typed, where, in what state
of the repository.

Nothing of the repository runs: only plumbing is used, which asks no filters, and what its settings
have even plumbing start, or fetch from elsewhere, is switched off.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from codespec.errors import InputError
from codespec.system import programs

_OTHER_REPOSITORY = {
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_LITERAL_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_DIFF_OPTS"),
}
"""Variables that git sets for its hooks, where a gate may run, and those with which it would obey
us less."""
_TAME = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""A repository's own settings name programs for both."""
_NO_FETCHING = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Variables that keep git from fetching what a partial clone lacks, by a program that the
repository may name."""
RENAMES = ("-M50%", "-l1000")
"""Options that find renames as git does by itself, whatever its settings."""
MIN_LINES = 2
MAX_HUNKS = 12


@dataclass(frozen=True, slots=True)
class Hunk:
    """Added lines at their place.

    prefix:  the file before them, the commit's earlier hunks applied.
    text:    the added lines.
    suffix:  the parent's text after them.
    removed: the parent's lines they replace.
    """

    path: str
    prefix: str
    text: str
    suffix: str
    removed: str


@dataclass(frozen=True, slots=True)
class _Change:
    """A file that a commit adds, changes or renames: before is where it was, its blobs are "" where
    there is none."""

    path: str
    before: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Commit:
    """hunks: of all files, in the order of the diff. tree: path -> blob of the parent; a file that
    the commit renames has its new name there already, as after `git mv`."""

    sha: str
    tree: dict[str, str]
    hunks: tuple[Hunk, ...]


class History:
    """Reads a repository through `git`; of a folder inside of one, what lies in that folder.

    min_lines: least lines that a hunk adds; 0 for those, too, that only remove some.

    Raises: InputError when `root` is no repository, or git is missing.
    """

    def __init__(self, root: Path, glob: str = "*.py", min_lines: int = MIN_LINES) -> None:
        self._root = root
        self._glob = glob
        self._min_lines = min_lines
        try:
            self._git("rev-parse", "--git-dir")
        except FileNotFoundError:
            raise InputError("git is not installed", "The replay reads a Git history.") from None
        except subprocess.CalledProcessError as e:
            said = _said(e)
            if "not a git repository" not in said:  # it may be somebody else's
                raise InputError(f"{root}: {said}", f"Try: git -C {root} status.") from None
            raise InputError(
                f"{root}: not a Git repository", "Give a clone with history."
            ) from None

    def commits(self, n: int, until: str = "HEAD") -> list[Commit]:
        """The last `n` commits with something to replay up to a revision, oldest first.

        Raises: InputError for an unknown revision, and for a repository that git cannot read.
        """
        last = self._resolved(until)
        try:
            return list(self._last(n, last))[::-1]
        except subprocess.CalledProcessError as e:
            raise self._unreadable(e) from None

    def each(
        self, n: int, until: str = "HEAD", progress: Callable[[int, int], None] = lambda i, n: None
    ) -> Iterator[Commit]:
        """`commits`, one after the other. progress: told the number done, and of all. Raises: as
        `commits`."""
        commits = self.commits(n, until)
        for i, commit in enumerate(commits):
            progress(i, len(commits))
            yield commit

    def _resolved(self, until: str) -> str:
        """The id of the commit that a revision names. Raises: InputError."""
        try:
            return self._git("rev-parse", "--verify", "--quiet", f"{until}^{{commit}}").strip()
        except subprocess.CalledProcessError:
            if until == "HEAD":
                raise InputError(
                    f"{self._root}: there is no commit in it yet", "Give a clone with history."
                ) from None
            raise InputError(
                f"{until}: no such commit in {self._root}", "A shallow clone lacks old commits."
            ) from None

    def _unreadable(self, error: subprocess.CalledProcessError) -> InputError:
        return InputError(f"{self._root}: {_said(error)}", "Is the clone complete?")

    def nothing(self) -> InputError:
        """Why there is nothing to replay."""
        what = f'No commit adds two lines or more of code to files like "{self._glob}"'
        if self._git("rev-parse", "--is-shallow-repository").strip() == "true":
            hint = f"{what}, as far as this shallow clone goes: git fetch --unshallow."
        elif self._git("rev-list", "--count", "HEAD").strip() == "1":
            hint = "It has one commit, and edits begin with the second: nothing was there before."
        else:
            hint = f"{what}: say which with --paths."
        return InputError(f"{self._root}: no edits to replay", hint)

    def _last(self, n: int, last: str) -> Iterator[Commit]:
        """From `last` backwards. Git looks for the files: where few commits touch any, asking each
        takes minutes."""
        asked = ("--no-merges", "--full-history", "--format=%H %P", last, "--", f"./{self._glob}")
        n_found = 0
        for line in self._lines("rev-list", *asked):
            sha, *parents = line.split()
            if sha == "commit" or len(parents) != 1:  # it says each twice
                continue
            changes = self._changes(parents[0], sha)
            hunks = [hunk for each in changes for hunk in self._hunks(parents[0], sha, each)]
            if hunks:
                tree = self._tree(parents[0], changes)
                yield Commit(sha, tree, tuple(hunks[:MAX_HUNKS]))
                n_found += 1
                if n_found == n:
                    return

    def blob(self, sha: str) -> str:
        """Raises: InputError where it is missing or damaged."""
        try:
            return self._git("cat-file", "blob", sha)
        except subprocess.CalledProcessError as e:
            raise self._unreadable(e) from None

    def _tree(self, commit: str, changes: Sequence[_Change]) -> dict[str, str]:
        tree: dict[str, str] = {}
        for entry in self._git("ls-tree", "-r", "-z", commit).split("\0"):
            meta, _, path = entry.partition("\t")
            if path and fnmatch(path, self._glob) and meta.startswith("100"):
                tree[path] = meta.split()[2]
        for renamed in changes:
            if renamed.path != renamed.before:
                tree.pop(renamed.before, None)
                tree[renamed.path] = renamed.old
        return tree

    def _changes(self, parent: str, commit: str) -> list[_Change]:
        fields = iter(
            self._git(
                *("diff-tree", "-r", "-z", "--raw", "--relative", *RENAMES, "--diff-filter=AMR"),
                *(parent, commit),
            ).split("\0")
        )
        found: list[_Change] = []
        for meta in filter(None, fields):
            _, mode, old, new, status = meta.split()
            before = path = next(fields)
            if status.startswith("R"):
                path = next(fields)
            if fnmatch(path, self._glob) and mode in ("100644", "100755"):
                found.append(_Change(path, before, old.strip("0") and old, new))
        return found

    def _hunks(self, parent: str, commit: str, change: _Change) -> Iterator[Hunk]:
        if change.old == change.new:
            return
        old = self.blob(change.old) if change.old else ""
        new = self.blob(change.new)
        if "\0" in old or "\0" in new:
            return
        # Attributes may call a text binary. The name of a file, whatever is in it, is no pattern.
        asked = ("diff-tree", "-p", "-U0", "--text", *RENAMES, parent, commit)
        diff = self._git("--literal-pathspecs", *asked, "--", change.before, change.path)
        yield from hunks_of(change.path, old, new, diff, self._min_lines)

    def _lines(self, *args: str) -> Iterator[str]:
        command = git_command(self._root, *args)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment()) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                for line in process.stdout:
                    yield line.decode()
                said = process.stderr.read()
                if process.wait():
                    raise subprocess.CalledProcessError(process.returncode, command, stderr=said)
            finally:
                process.kill()  # it may look on for long

    def _git(self, *args: str) -> str:
        command = git_command(self._root, *args)
        done = subprocess.run(command, capture_output=True, check=True, env=environment())
        return done.stdout.decode("utf-8", "replace")


def git_command(root: Path, *args: str) -> list[str]:
    """To be run with `environment`. Raises: FileNotFoundError where there is no git."""
    programs.never_below(root)
    return programs.command("git", *_TAME, "-C", str(root), *args)


def environment() -> dict[str, str]:
    """Also in English: git's messages are told apart."""
    kept = {name: v for name, v in os.environ.items() if name not in _OTHER_REPOSITORY}
    return {**kept, **_NO_FETCHING, "PATH": programs.path(), "LC_ALL": "C"}


def ask_git(root: Path, *args: str) -> str:
    """Plumbing only, names of files are no patterns, and "" where it fails: no repository, no such
    version."""
    try:
        command = git_command(root, "--literal-pathspecs", *args)
        done = subprocess.run(command, capture_output=True, check=True, env=environment())
        return done.stdout.decode("utf-8", "replace")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _said(error: subprocess.CalledProcessError) -> str:
    """Git's own words of what went wrong."""
    lines = (error.stderr or b"").decode("utf-8", "replace").strip().splitlines()
    line = next((line for line in lines if not line.startswith("warning: ")), "")
    return line.removeprefix("fatal: ") or f"git ended with {error.returncode}"


_HEADER = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


def hunks_of(
    path: str, old: str, new: str, diff: str, min_lines: int = MIN_LINES
) -> Iterator[Hunk]:
    """The hunks of a `-U0` diff that add at least so many lines."""
    # As Git counts them: to Python a form feed ends a line, too.
    old_lines, new_lines = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    for m in _HEADER.finditer(diff):
        old_start, new_start = int(m[1]), int(m[3])
        n_old, n_new = int(m[2] or 1), int(m[4] or 1)
        if n_new < min_lines:
            continue
        # A hunk without old lines, or without new ones, names the line it follows instead of its
        # first one.
        old_end = old_start - 1 + n_old if n_old else old_start
        at = new_start - 1 if n_new else new_start
        yield Hunk(
            path,
            "".join(new_lines[:at]),
            "".join(new_lines[at : at + n_new]),
            "".join(old_lines[old_end:]),
            "".join(old_lines[old_end - n_old : old_end]),
        )
