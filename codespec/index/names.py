"""Which names of the workspace's symbol table a text uses: one pass of an Aho-Corasick automaton
over the text, whatever the number of names.

Source: Aho and Corasick 1975, in the implementation of pyahocorasick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import ahocorasick

from codespec.index.reader import WorkspaceIndex

MIN_CHARS = 3
MAX_NAMES = 200_000
MIN_AGE_S = 30.0
"""An index that changes with every save is not worth reading again each time."""


class NameScanner:
    """Finds names as whole identifiers. Takes about 100 bytes and 3 us a name to build."""

    def __init__(self, names: Collection[str]) -> None:
        self._automaton = ahocorasick.Automaton()
        for name in sorted(names, key=len)[:MAX_NAMES]:
            if len(name) >= MIN_CHARS:
                self._automaton.add_word(name, name)
        if len(self._automaton):
            self._automaton.make_automaton()

    def find(self, text: str) -> list[str]:
        """The names in a text, each once, the one used last first."""
        if not len(self._automaton):
            return []
        found: dict[str, None] = {}
        for end, name in self._automaton.iter(text):
            start = end + 1 - len(name)
            if not _goes_on(text[start - 1 : start]) and not _goes_on(text[end + 1 : end + 2]):
                found.pop(name, None)
                found[name] = None
        return list(found)[::-1]


class Scanners:
    """The scanner of each workspace, made anew for a changed index, but not too often."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: dict[str, tuple[tuple[int, int, int], float, NameScanner]] = {}

    def of(self, index: WorkspaceIndex) -> NameScanner:
        known = self._made.get(index.root)
        if known is not None:
            generation, made_s, scanner = known
            if generation == index.generation or self._clock() < made_s + MIN_AGE_S:
                return scanner
        scanner = NameScanner(index.defined_names())
        self._made[index.root] = (index.generation, self._clock(), scanner)
        return scanner


def _goes_on(character: str) -> bool:
    return character == "_" or character.isalnum()
