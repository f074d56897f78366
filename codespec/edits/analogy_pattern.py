"""Lines like those that changed: the change made by analogy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

from codespec.edits.analogy import Analogies
from codespec.edits.block_pattern import shared_indentation
from codespec.edits.line_tokens import dedented, indentation, indented, signs
from codespec.edits.pattern import FittingPlace, Making, Pattern, lines_around
from codespec.edits.searched_text import SearchedText
from codespec.edits.substitutions import MAX_CONTEXT, n_equal

_N_MAKINGS = 2
"""The latest makings that places are compared with."""
_LEAST_SHARE = 0.7
"""Share of tokens that two blocks have in common."""


class AnalogyPattern(Pattern):
    """The change of a line, on lines like it."""

    kind: ClassVar[str] = "analogy"
    everywhere: ClassVar[bool] = False

    def __init__(self, making: Making) -> None:
        assert making.substitution is not None
        super().__init__(making.substitution.removed, making.substitution.added, "")

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        seen: set[int] = set()
        for making in self.makings[: -_N_MAKINGS - 1 : -1]:
            made: dict[str, tuple[str, int, int] | None] = {}
            for number in text.alike(making.old):
                line = text.lines[number]
                body = line.strip()
                if number in seen or body == making.old:
                    continue
                seen.add(number)
                if body not in made:
                    made[body] = _made(making, body, text.analogies)
                found = made[body]
                if found is not None:
                    new, n_left, n_right = found
                    new = indentation(line) + new + line[len(line.rstrip()) :]
                    yield FittingPlace(number, 1, (new,), making, n_left, n_right)


def _made(making: Making, body: str, analogies: Analogies) -> tuple[str, int, int] | None:
    """(new line, tokens that agree on the left, on the right); None for no analogy."""
    new = analogies.get(making.old, making.new, body)
    if not new or new == body:
        return None
    ours, theirs = signs(making.old), signs(body)
    n_left = n_equal(ours, theirs)
    n_right = min(n_equal(ours[::-1], theirs[::-1]), min(len(ours), len(theirs)) - n_left)
    return new, min(n_left, MAX_CONTEXT), min(n_right, MAX_CONTEXT)


class BlockAnalogyPattern(Pattern):
    """The change of several lines, on lines like them."""

    kind: ClassVar[str] = "block_analogy"
    everywhere: ClassVar[bool] = False

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old = dedented(old)
        self._longest = max(range(len(self._old)), key=lambda i: len(self._old[i]))
        self._tokens = Counter(signs("\n".join(self._old)))
        super().__init__("\n".join(self._old), "\n".join(dedented(new)), "")

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        n_lines = len(self._old)
        making = self.makings[-1]
        for number in text.alike(self._old[self._longest].strip()):
            first = number - self._longest
            there = text.lines[first : first + n_lines] if first >= 0 else []
            block = "\n".join(dedented(there))
            if len(there) < n_lines or block == self.removed or not self._is_like(block):
                continue
            new = text.analogies.get(self.removed, self.added, block)
            if not new or new == block:
                continue
            n_left, n_right = lines_around(text, first, n_lines, home, making)
            lines = indented(new.split("\n"), shared_indentation(there))
            yield FittingPlace(first, n_lines, lines, making, n_left, n_right)

    def _is_like(self, block: str) -> bool:
        tokens = Counter(signs(block))
        n_shared = 2 * (tokens & self._tokens).total()
        return n_shared >= _LEAST_SHARE * (tokens.total() + self._tokens.total())
