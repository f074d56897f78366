"""The texts among which next edits look for places, commit by commit: the parent's files and an
index of their words, carried on to the next commit's parent by what differs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from .line_hunks import Blobs

_WORD = re.compile(r"\w+")


class ParentFiles:
    """All files of a commit's parent, by path. One thread only."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._tree: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._holders: dict[str, set[str]] = {}

    def move_to(self, tree: Mapping[str, str]) -> None:
        """Hold the files of this tree, path -> blob, and no others."""
        changed = {path for path in {*tree, *self._tree} if tree.get(path) != self._tree.get(path)}
        for path in changed:
            before = self._texts.pop(path, "")
            now = self._blobs.text(tree[path]) if path in tree else ""
            old, new = set(_WORD.findall(before)), set(_WORD.findall(now))
            for word in old - new:
                self._holders[word].discard(path)
            for word in new - old:
                self._holders.setdefault(word, set()).add(path)
            if path in tree:
                self._texts[path] = now
        self._tree = dict(tree)

    def __contains__(self, path: str) -> bool:
        return path in self._texts

    def text(self, path: str) -> str:
        return self._texts[path]

    def holding(self, words: Collection[str]) -> set[str]:
        """Paths of the files that hold all these words; of all files without words."""
        found = sorted((self._holders.get(word, set()) for word in words), key=len)
        return found[0].intersection(*found[1:]) if found else set(self._texts)


class SessionTexts:
    """The texts of one session: the files changed so far, which are open, and the parent's others.

    Paths are absolute, below `ROOT`.
    """

    ROOT = "/"

    def __init__(self, files: ParentFiles) -> None:
        self._files = files
        self._open: dict[str, str] = {}

    @property
    def open(self) -> Mapping[str, str]:
        return self._open

    def set_text(self, path: str, text: str) -> None:
        """Open a file, or change it. path: in the repository."""
        self._open[self.ROOT + path] = text

    def now(self, path: str) -> str:
        """The text of a file of the repository as it is now."""
        opened = self._open.get(self.ROOT + path)
        return self._files.text(path) if opened is None else opened

    def holding(self, words: Collection[str], n_most: int) -> Iterable[tuple[str, str]]:
        """Files in folders of open ones first, then by path."""
        folders = {path.rpartition("/")[0] for path in self._open}
        found = (self.ROOT + path for path in self._files.holding(words))
        apart = [path for path in found if path not in self._open]
        apart.sort(key=lambda path: (path.rpartition("/")[0] not in folders, path))
        for path in apart[:n_most]:
            yield path, self._files.text(path.removeprefix(self.ROOT))
