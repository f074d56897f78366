"""Which files of a workspace hold given words: an inverted index in memory, of hashes.

The segments find text by its tokens, and a word's tokens depend on what stands before it.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from codespec.index.reader import WorkspaceIndex
from codespec.index.walk import is_binary, read_file
from codespec.syntax.text import normalise
from codespec.system.files import FileState, relative

MAX_FILE_BYTES = 1_000_000
"""Bytes of a file; longer ones are left out."""
MAX_WORDS = 4_000_000
"""Different words of each file, all files together: 48 MB. Files beyond it are left out."""
_MANY = 512
"""Contents that are looked through one by one before they are merged."""
_MAX_ANSWERS = 256
"""Answers that are kept while no file changes."""
_WORD = re.compile(r"\w+")
_Hashes = npt.NDArray[np.uint32]


def words_of(text: str) -> set[str]:
    """The words of a text: runs of letters, digits and underscores."""
    return set(_WORD.findall(text))


def read_text(path: str) -> str | None:
    """Text of a regular file, \\n line ends; None for one that is too long, is no UTF-8 or cannot
    be read."""
    read = read_file(path, MAX_FILE_BYTES)
    if read is None or is_binary(read[0]):
        return None
    return normalise(read[0].decode())


class FileWords:
    """Words of the files in a workspace's index. `read_some` reads them, a file at a time; files
    that were not read yet are found by no word. Not thread-safe."""

    def __init__(self, index: WorkspaceIndex) -> None:
        self._index = index
        self._generation: FileState = None
        self._paths: dict[str, list[str]] = {}  # by content
        self._unread: list[str] = []  # contents
        self._words: dict[str, _Hashes] = {}  # by content
        self._n_words = 0
        self._recent: dict[str, frozenset[int]] = {}  # words of contents that are not merged yet
        self._numbers: dict[str, int] = {}  # of the contents that are merged
        self._merged: tuple[_Hashes, npt.NDArray[np.int32]] | None = None
        self._answers: dict[tuple[tuple[int, ...], str], list[str]] = {}

    def read_some(self) -> bool:
        """Read a file. Returns: True while there are more. A millisecond or two."""
        self._follow()
        while self._unread:
            key = self._unread.pop()
            text = read_text(os.path.join(self._index.root, self._paths[key][0]))
            words = frozenset(_hash_of(word) for word in words_of(text or ""))
            hashes = np.array(sorted(words), np.uint32)
            if self._n_words + len(hashes) > MAX_WORDS:
                self._unread.clear()
                break
            self._words[key], self._recent[key] = hashes, words
            self._answers.clear()
            self._n_words += len(hashes)
            if len(self._recent) > max(_MANY, len(self._numbers)):
                self._merge()
            return True
        if len(self._recent) > len(self._numbers) // 8:
            self._merge()
            return True
        return False

    def holding(self, words: Collection[str], near: str = "") -> Iterator[str]:
        """Paths of files that held all these words when they were read, absolute; those first that
        are fewest folders away from `near`, an absolute path. No words: no files."""
        self._follow()
        hashes = tuple(sorted({_hash_of(word) for word in words}))
        if not hashes:
            return
        known = self._answers.get((hashes, near))
        if known is None:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            known = self._answers[hashes, near] = self._holding(hashes, near)
        yield from known

    def _holding(self, hashes: Sequence[int], near: str) -> list[str]:
        found = [path for key in self._contents(hashes) for path in self._paths[key]]
        parts = PurePath(relative(near, self._index.root)).parts if near else ()

        def distance(path: str) -> tuple[int, str]:
            there = PurePath(path).parts
            pairs = zip(there, parts, strict=False)
            n_common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
            return len(there) + len(parts) - 2 * n_common, path

        return [os.path.join(self._index.root, path) for path in sorted(found, key=distance)]

    def _contents(self, hashes: Sequence[int]) -> list[str]:
        """Contents with all these words."""
        found: list[str] = []
        if self._merged is not None:
            all_hashes, numbers = self._merged
            keys = list(self._numbers)
            ends = [np.searchsorted(all_hashes, hashes, side) for side in ("left", "right")]
            ranges = sorted(zip(*ends, strict=True), key=lambda ends: int(ends[1] - ends[0]))
            common = numbers[slice(*ranges[0])]
            for start, end in ranges[1:]:
                common = np.intersect1d(common, numbers[start:end])
            found = [keys[number] for number in common.tolist() if keys[number] in self._paths]
        asked = frozenset(hashes)
        found += [key for key, known in self._recent.items() if asked <= known]
        return list(dict.fromkeys(found))

    def _follow(self) -> None:
        """Take over a newer generation of the index."""
        if self._generation == self._index.generation:
            return
        self._generation = self._index.generation
        self._answers.clear()
        self._paths = {}
        for path, key in self._index.contents.items():
            self._paths.setdefault(key, []).append(path)
        for gone in self._words.keys() - self._paths.keys():
            self._n_words -= len(self._words.pop(gone))
            self._recent.pop(gone, None)
        self._unread = sorted(self._paths.keys() - self._words.keys())

    def _merge(self) -> None:
        """Put the words of all contents in one sorted list."""
        self._recent.clear()
        self._numbers = {key: number for number, key in enumerate(self._words)}
        sizes = [len(hashes) for hashes in self._words.values()]
        numbers = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        hashes = np.concatenate(list(self._words.values()))
        order = np.argsort(hashes, kind="stable")
        self._merged = hashes[order], numbers[order]


def _hash_of(word: str) -> int:
    return hash(word) & 0xFFFFFFFF
