"""Walk over a workspace and reading of its files, trusting nothing in it.

Links are not followed, so the walk ends and stays inside; only regular files are opened, without
waiting on them, so a pipe or device in a repository cannot hang the indexer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from codespec.rules.ignore import MAX_DEPTH, IgnoreRules

MAX_FILES = 500_000


@dataclass(frozen=True, slots=True)
class FileStat:
    """Size and times of a file, which tell a changed file from an unchanged one without reading it.
    The change time catches writes that put the modification time back (`cp -p`, archives)."""

    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, s: os.stat_result) -> FileStat:
        return cls(s.st_size, s.st_mtime_ns, s.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class FileCandidate:
    """A file that no rule excludes. path: relative to the root, "/" between components."""

    path: str
    stat: FileStat


@dataclass(slots=True)
class WorkspaceFiles:
    """Result of a scan. files: sorted by path. The counts are of files left out; truncated: True if
    the scan stopped at `MAX_FILES`."""

    files: list[FileCandidate] = field(default_factory=list[FileCandidate])
    n_excluded: int = 0
    n_not_text: int = 0
    n_too_large: int = 0
    truncated: bool = False


def scan(rules: IgnoreRules, max_file_bytes: int, paths: Collection[str] = ("",)) -> WorkspaceFiles:
    """All candidate files below `rules.root`. About 60,000 files a second. Folders that cannot be
    read are left out; an unreadable root gives an empty scan.

    paths: files and folders to look at, relative to the root, "/" between components; "" is the
        root. Everything below a folder is looked at, too.
    """
    found = WorkspaceFiles()
    stack: list[tuple[str, ...]] = []
    for path in outermost(paths):
        _start(path, rules, max_file_bytes, found, stack)
    while stack:
        folder = stack.pop()
        try:
            with os.scandir(os.path.join(rules.root, *folder)) as entries:
                for entry in entries:
                    _visit(entry, folder, rules, max_file_bytes, found, stack)
        except OSError:
            continue
        if len(found.files) >= MAX_FILES:
            found.truncated = True
            break
    found.files.sort(key=lambda c: c.path)
    return found


def has_anything_at(path: str, rules: IgnoreRules, max_file_bytes: int) -> bool:
    """True if a scan that begins at this path finds a file there, or a folder to look into."""
    found, stack = WorkspaceFiles(), list[tuple[str, ...]]()
    _start(path, rules, max_file_bytes, found, stack)
    return bool(found.files or stack)


def outermost(paths: Collection[str]) -> list[str]:
    """`paths` without those that lie below others of them, sorted."""
    given = set(paths)
    return sorted(p for p in given if not any(above in given for above in _above(p)))


def is_within(path: str, paths: Collection[str]) -> bool:
    """True if a path is one of `paths` (a set, for speed) or below one."""
    if path in paths:
        return True
    # Called for every file of a workspace after each save: a loop is faster than a generator.
    end = path.rfind("/")
    while end >= 0:
        if path[:end] in paths:
            return True
        end = path.rfind("/", 0, end)
    return bool(path) and "" in paths


def _above(path: str) -> Iterator[str]:
    """The folders that contain a relative path, the root last."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
    if path:
        yield ""


def _start(
    path: str,
    rules: IgnoreRules,
    max_file_bytes: int,
    found: WorkspaceFiles,
    stack: list[tuple[str, ...]],
) -> None:
    """Look at one of the paths a scan begins at: like `_visit`, but nothing is known of its
    parents."""
    if not path:
        stack.append(())
        return
    parts = tuple(path.split("/"))
    for n in range(1, len(parts)):
        folder = os.path.join(rules.root, *parts[:n])
        try:
            is_dir = stat.S_ISDIR(os.lstat(folder).st_mode)
        except OSError:
            return
        if not is_dir or not is_text_name(parts[n - 1]) or rules.entry(parts[:n], True):
            return
    _visit(_Entry(os.path.join(rules.root, path)), parts[:-1], rules, max_file_bytes, found, stack)


class _Entry:
    """The part of os.DirEntry that `_visit` needs, for a path that no folder was listed for."""

    def __init__(self, path: str) -> None:
        self.name = os.path.basename(path)
        self._path = path

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        return stat.S_ISDIR(self._mode())

    def is_file(self, *, follow_symlinks: bool) -> bool:
        return stat.S_ISREG(self._mode())

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        return os.lstat(self._path)

    def _mode(self) -> int:
        try:
            return os.lstat(self._path).st_mode
        except OSError:
            return 0  # gone, which is no file


def _visit(
    entry: os.DirEntry[str] | _Entry,
    folder: tuple[str, ...],
    rules: IgnoreRules,
    max_file_bytes: int,
    found: WorkspaceFiles,
    stack: list[tuple[str, ...]],
) -> None:
    parts = (*folder, entry.name)
    is_dir = entry.is_dir(follow_symlinks=False)
    if not is_dir and not entry.is_file(follow_symlinks=False):
        return  # a link, pipe, socket or device
    if not is_text_name(entry.name):
        found.n_not_text += 1
    elif rules.entry(parts, is_dir):
        found.n_excluded += 1
    elif is_dir:
        if len(parts) < MAX_DEPTH:
            stack.append(parts)
    else:
        try:
            s = FileStat.of(entry.stat(follow_symlinks=False))
        except OSError:
            return  # gone in the meantime
        if s.size > max_file_bytes:
            found.n_too_large += 1
        else:
            found.files.append(FileCandidate("/".join(parts), s))


def is_text_name(name: str) -> bool:
    """True if a name is valid Unicode: others cannot be written to a manifest or shown."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(path: str | os.PathLike[str]) -> str:
    """A path, or a message with one, that can be written or shown: bytes that are not text are
    replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def read_file(path: str, max_file_bytes: int) -> tuple[bytes, FileStat] | None:
    """Content of a regular file and its state before it was read; None if it is no regular file,
    has grown too large, or cannot be read."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0)
    try:
        fd = os.open(path, flags)
    except OSError:
        return None
    try:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode):
            return None
        with os.fdopen(os.dup(fd), "rb") as f:
            data = f.read(max_file_bytes + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    return None if len(data) > max_file_bytes else (data, FileStat.of(s))


def is_binary(data: bytes) -> bool:
    """True for a NUL byte or invalid UTF-8: nothing a tokenizer of source code should see."""
    if b"\0" in data:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False
