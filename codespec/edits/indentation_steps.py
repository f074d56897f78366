"""By how much lines are indented deeper: a change that is made again elsewhere takes the steps that
are usual there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from codespec.edits.line_tokens import indentation
from codespec.edits.searched_text import SearchedText

_USUAL = ("\t", "  ", "   ", "    ")
"""Steps of which a whole text is made. Others align lines with what stands above them."""
_N_TOGETHER, _N_AROUND = 16, 8
"""Lines whose steps are told together, and further lines above and below them that tell."""


class StepsInstead(NamedTuple):
    """White space that takes the place of each step of an indentation; both "" where indentations
    stay as they are."""

    step: str
    instead: str

    def of(self, depth: str) -> str:
        """An indentation that consists of such steps, with the others; any other as it is."""
        n = len(depth) // len(self.step) if self.step else 0
        return self.instead * n if depth == self.step * n else depth

    def in_lines(self, lines: Sequence[str]) -> tuple[str, ...]:
        """The same of the beginning of each line."""
        if not self.step:
            return tuple(lines)
        return tuple(self.of(indentation(line)) + line.lstrip() for line in lines)


AS_THEY_ARE = StepsInstead("", "")


def usual_step(text: SearchedText, line: int) -> str:
    """The step that is most frequent around a line; "" where there is none."""
    return next(iter(_steps_around(text, line)), "")


def steps_instead(step: str, text: SearchedText, line: int) -> StepsInstead:
    """The step that is usual around a line of a text, instead of another one, which stays where it
    is in use as well, or is "" and not known."""
    there = _steps_around(text, line) if step else []
    return AS_THEY_ARE if not there or step in there else StepsInstead(step, there[0])


def _steps_around(text: SearchedText, line: int) -> list[str]:
    """The usual steps by which lines are deeper than those above them, the most frequent first."""
    part = line // _N_TOGETHER

    def steps() -> list[str]:
        first = part * _N_TOGETHER
        near = text.lines[max(0, first - _N_AROUND) : first + _N_TOGETHER + _N_AROUND]
        depths = [indentation(line) for line in near if line.strip()]
        found = [b[len(a) :] for a, b in pairwise(depths) if len(b) > len(a) and b.startswith(a)]
        return sorted({*found}.intersection(_USUAL), key=lambda step: (-found.count(step), step))

    known: list[str] = text.found_once(("steps", part), steps)
    return known
