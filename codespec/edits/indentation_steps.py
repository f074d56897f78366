"""By how much lines are indented deeper: a change that is made again elsewhere takes the steps that
are usual there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from codespec.edits.line_tokens import indentation

_USUAL = ("\t", "  ", "   ", "    ")
"""Steps of which a whole text is made. Others align lines with what stands above them."""
_N_AROUND = 16
"""Lines above and below a place that tell its steps."""


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


def steps_instead(home: Sequence[str], at_home: int, there: Sequence[str], at: int) -> StepsInstead:
    """The steps that are usual around a line of a text, instead of those around a line of the text
    that a change comes from. They stay where the latter are in use, too."""
    of, to = _steps_around(home, at_home), _steps_around(there, at)
    step, instead = _most_frequent(of), _most_frequent(to)
    return AS_THEY_ARE if not step or not instead or step in to else StepsInstead(step, instead)


def _steps_around(lines: Sequence[str], at: int) -> Counter[str]:
    """How often lines are a usual step deeper than those above them."""
    near = lines[max(0, at - _N_AROUND) : at + _N_AROUND]
    depths = [indentation(line) for line in near if line.strip()]
    steps = (after[len(before) :] for before, after in pairwise(depths) if after.startswith(before))
    return Counter(step for step in steps if step in _USUAL)


def _most_frequent(steps: Counter[str]) -> str:
    return steps.most_common(1)[0][0] if steps else ""
