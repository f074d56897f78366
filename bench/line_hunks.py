"""Commits as hunks of whole lines, for next edits: all that a commit replaces, inserts and deletes
in files that were there before, in the order of `git show`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from codespec.errors import InputError

from .edit_truth import n_equal
from .history import RENAMES, History, environment, git_command

SOURCES = tuple(
    f"*.{end}"
    for end in (
        *("py", "pyi", "rs", "go", "ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "vue"),
        *("java", "kt", "scala", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "cs", "rb", "php"),
        *("swift", "ex", "exs", "zig", "lua", "dart", "hs", "ml"),
    )
)
"""Patterns of source files by their endings."""
MAX_BYTES = 400_000
"""A larger file is data, and in no workspace here."""
MAX_COMMIT_HUNKS = 400
"""Hunks of the largest commit that is read: beyond, programs made it."""
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class LineHunk:
    """Lines that a commit replaces. line: the first of them in the parent's text, from 0, or the
    one that lines are inserted before. Lines end with \\n alone, which is no part of them."""

    path: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HunkCommit:
    """hunks: files as git lists them, top down in each. renamed: (path before, path now)."""

    sha: str
    parent: str
    hunks: tuple[LineHunk, ...]
    renamed: tuple[tuple[str, str], ...]


class HunkHistory(History):
    """The history of a repository, or of a folder inside of one, as hunks of lines.

    paths: patterns of files; with none, `SOURCES`.

    Raises: InputError when `root` is no repository, or git is missing.
    """

    def __init__(self, root: Path, paths: Sequence[str] = ()) -> None:
        self._globs = tuple(paths) or SOURCES
        super().__init__(root, ", ".join(self._globs))

    def line_commits(self, n: int, until: str = "HEAD") -> list[HunkCommit]:
        """The last `n` commits with such hunks, oldest first: no merges, and none of more than
        `MAX_COMMIT_HUNKS`. Raises: InputError."""
        last = self._resolved(until)
        try:
            return list(self._newest_first(n, last))[::-1]
        except subprocess.CalledProcessError as e:
            raise self._unreadable(e) from None

    def parent_tree(self, commit: HunkCommit) -> dict[str, str]:
        """Path -> blob of the parent's files; one that the commit renames has its new name. Raises:
        InputError."""
        tree: dict[str, str] = {}
        try:
            listed = self._git("ls-tree", "-r", "-l", "-z", commit.parent)
        except subprocess.CalledProcessError as e:
            raise self._unreadable(e) from None
        before = dict(commit.renamed)
        for entry in listed.split("\0"):
            meta, _, path = entry.partition("\t")
            mode, _, blob, size = meta.split() if path else ("", "", "", "0")
            path = before.get(path, path)
            if self._is_meant(path) and mode.startswith("100") and int(size) <= MAX_BYTES:
                tree[path] = blob
        return tree

    def blobs(self) -> Blobs:
        """A reader of this repository's blobs."""
        return Blobs(self._root)

    def _is_meant(self, path: str) -> bool:
        return any(fnmatch(path, glob) for glob in self._globs)

    def _newest_first(self, n: int, last: str) -> Iterator[HunkCommit]:
        pathspecs = [f"./{glob}" for glob in self._globs]
        asked = ("--no-merges", "--full-history", "--format=%H %P", last, "--", *pathspecs)
        n_found = 0
        for line in self._lines("rev-list", *asked):
            sha, *parents = line.split()
            if sha == "commit" or len(parents) != 1:  # it says each twice
                continue
            commit = self._read(sha, parents[0])
            if 0 < len(commit.hunks) <= MAX_COMMIT_HUNKS:
                yield commit
                n_found += 1
                if n_found == n:
                    return

    def _read(self, sha: str, parent: str) -> HunkCommit:
        asked = (
            *("diff-tree", "-r", "-z", "--raw", "-p", "-U0", "--text", "--relative", *RENAMES),
            *("--diff-algorithm=myers", "--indent-heuristic", "--no-ext-diff", "--no-textconv"),
            *("--no-color", "--src-prefix=a/", "--dst-prefix=b/"),
            *("--diff-filter=MR", parent, sha),
        )
        listed, _, patch = self._git(*asked).partition("\0\0")
        fields = iter(listed.split("\0"))
        # Lines of hunks begin with a sign, so no text of a file looks like a header.
        parts = re.split(r"^diff --git .*\n", patch, flags=re.MULTILINE)[1:]
        hunks: list[LineHunk] = []
        renamed: list[tuple[str, str]] = []
        for meta in filter(None, fields):
            _, mode, _, _, status = meta.split()
            before = path = next(fields)
            if status.startswith("R"):
                path = next(fields)
                renamed.append((before, path))
            part = parts.pop(0)
            if mode in ("100644", "100755") and self._is_meant(path) and "\0" not in part:
                hunks += _hunks_in(path, part)
        return HunkCommit(sha, parent, tuple(hunks), tuple(renamed))


class Blobs:
    """Texts by blob, from one `git cat-file` that stays: decoded, with \\n line ends, in which
    lines are parted by \\n alone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process = subprocess.Popen(
            git_command(root, "cat-file", "--batch"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )

    def __enter__(self) -> Blobs:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def text(self, blob: str) -> str:
        """ "" for what is no text. Raises: InputError where it is missing."""
        sent, said = self._process.stdin, self._process.stdout
        assert sent is not None
        assert said is not None
        sent.write(f"{blob}\n".encode())
        sent.flush()
        header = said.readline().split()
        if len(header) != 3:
            raise InputError(f"{self._root}: {blob} is missing", "Is the clone complete?")
        data = said.read(int(header[2]) + 1)[:-1]
        return "" if b"\0" in data else data.decode("utf-8", "replace").replace("\r\n", "\n")


def _hunks_in(path: str, part: str) -> Iterator[LineHunk]:
    """The hunks of one file's part of a `-U0` diff, but those that change line ends alone."""
    lines = iter(part.split("\n"))
    for header in lines:
        m = _HUNK.match(header)
        if m is None:
            continue
        n_old, n_new = int(m[2] or 1), int(m[3] or 1)
        old: list[str] = []
        new: list[str] = []
        while len(old) < n_old or len(new) < n_new:
            text = next(lines)
            if text[:1] in ("-", "+"):
                (old if text[0] == "-" else new).append(text[1:].removesuffix("\r"))
        # A hunk without old lines names the line it follows instead of its first one.
        line = int(m[1]) - 1 if n_old else int(m[1])
        n, m = n_equal(old, new)
        if n + m < max(len(old), len(new)):
            ours, theirs = old[n : len(old) - m], new[n : len(new) - m]
            yield LineHunk(path, line + n, tuple(ours), tuple(theirs))
