"""Places in a text where someone could be typing, and the rest of a line or a few lines from there.

Source: Bavarian et al. 2022 (cuts on characters).
"""

from __future__ import annotations

import random
import re

Span = tuple[int, int]
LINE_START_RATE = 0.25
WORD_START_RATE = 0.7
"""Share of the cuts inside a word that move to its beginning: serving takes a begun token back."""

_WORD_END = re.compile(r"\w*\Z")


def line_bounds(text: str, position: int) -> Span:
    """Start and end (before its newline) of the line that holds position."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return start, len(text) if end < 0 else end


def late_position(text: str, rng: random.Random) -> int:
    """The later of two draws, because a prompt holds more text before the cursor than after it."""
    return max(rng.randrange(len(text)), rng.randrange(len(text)))


def cut_in_line(text: str, rng: random.Random) -> int:
    """A position where someone could be typing: in a line but not in its indentation. Where its
    code begins is likelier than any other place, because editors indent.
    """
    position = late_position(text, rng)
    start, end = line_bounds(text, position)
    code = start + len(text[start:end]) - len(text[start:end].lstrip())
    return code if rng.random() < LINE_START_RATE else at_word(text, rng.randint(code, end), rng)


def at_word(text: str, position: int, rng: random.Random) -> int:
    """The position, or the beginning of the word that it stands in."""
    inside = text[position : position + 1]
    if not (inside.isalnum() or inside == "_") or rng.random() >= WORD_START_RATE:
        return position
    start = text.rfind("\n", 0, position) + 1
    found = _WORD_END.search(text, start, position)
    return found.start() if found else position


def rest_of_line(text: str, rng: random.Random) -> Span:
    """From inside a line to its end, the commonest inline completion; from its end, a few lines."""
    start = cut_in_line(text, rng)
    end = line_bounds(text, start)[1]
    return (start, end) if start < end else further_lines(text, start, rng)


def few_lines(text: str, rng: random.Random) -> Span:
    """From inside a line over one to five lines more."""
    return further_lines(text, cut_in_line(text, rng), rng)


def further_lines(text: str, start: int, rng: random.Random) -> Span:
    end = line_bounds(text, start)[1]
    for _ in range(rng.randint(1, 5)):
        if end < len(text):
            end = line_bounds(text, end + 1)[1]
    return start, end
