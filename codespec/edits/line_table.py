"""Lines by their words and by their shapes, for all versions of one text: an edit costs its own
lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from codespec.edits.line_tokens import KEYWORDS, shape, signs, words

_MAX_COMPARED = 300
"""Lines that are compared with one: those that hold its rarest words."""
_MAX_ALIKE = 40
_LEAST_SHARE = 0.625
"""Share of each line's tokens that lines alike have in common."""


class LineTable:
    """Lines without indentation, each once. Lines that are gone stay known until there are many of
    them."""

    def __init__(self) -> None:
        self._signs: dict[str, frozenset[str]] = {}
        self._by_word: dict[str, list[str]] = defaultdict(list)
        self._by_shape: dict[str, list[str]] = defaultdict(list)

    def add(self, lines: Iterable[str], n_lines: int) -> None:
        """Add lines, all of the text's if it `is_full`. n_lines: of the text as it is now."""
        if self.is_full(n_lines):
            self._signs.clear()
            self._by_word.clear()
            self._by_shape.clear()
        for line in lines:
            if line not in self._signs:
                self._signs[line] = held = frozenset(signs(line))
                self._by_shape[shape(line)].append(line)
                for word in held:
                    if len(word) > 1 and word not in KEYWORDS:
                        self._by_word[word].append(line)

    def is_full(self, n_lines: int) -> bool:
        """True if it holds so many lines that are gone that the next `add` forgets all."""
        return len(self._signs) > 2 * n_lines + 1000

    def of_shape(self, line_shape: str) -> list[str]:
        """Lines of one shape (`line_tokens.shape`)."""
        return self._by_shape.get(line_shape, [])

    def alike(self, line: str) -> list[str]:
        """Lines that share most of their tokens with this one, likest first."""
        lists = [self._by_word.get(word, []) for word in set(words(line)) - KEYWORDS]
        compared: set[str] = set()
        for holding in sorted(lists, key=len):
            if len(compared) + len(holding) > _MAX_COMPARED:
                break
            compared.update(holding)
        ours = frozenset(signs(line))
        found: list[tuple[float, str]] = []
        for other in compared:
            theirs = self._signs[other]
            n_both = len(ours & theirs)
            if n_both >= _LEAST_SHARE * max(len(ours), len(theirs)):
                found.append((-n_both / len(ours | theirs), other))
        return [other for _, other in sorted(found)[:_MAX_ALIKE]]
