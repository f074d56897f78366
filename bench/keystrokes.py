"""Keystrokes that write the edits of a Git history again, by a rule without chance from run to run.

1. Commits from the oldest on; of each, the hunks that add two lines or more, in their order. The
   user goes to the place (`JUMP_S`).
2. The lines that the hunk replaces are deleted at once; an empty line stands in their place.
3. The added lines are typed character by character. The indentation of a line comes with its line
   break, as editors do it.
4. One key in `WRONG_EVERY` is wrong, and taken back with Backspace before the right one.
5. Before each key there is a pause: log-normal, with a median of `KEY_S` inside of words, `WORD_S`
   before them, `LINE_S` at the begin of a line. Typists differ; 0.12 s (fast) to 0.24 s (average)
   between keys is what Dhakal et al. (2018) found for prose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from .history import Hunk

JUMP_S, LINE_S, WORD_S, KEY_S = 1.5, 0.8, 0.22, 0.14
SIGMA = 0.35
WRONG_EVERY = 50
_WRONG = "etaonisrh"


@dataclass(frozen=True, slots=True)
class Stroke:
    """text: of the hunk from `at` on, what this key brings; pause_s: before it. wrong: what is
    typed and taken back first, "" mostly."""

    at: int
    text: str
    pause_s: float
    wrong: str = ""

    @property
    def end(self) -> int:
        return self.at + len(self.text)


def strokes(hunk: Hunk, seed: int) -> Iterator[Stroke]:
    """Keys for the hunk's text without its last line break. seed: other pauses."""
    text = hunk.text.removesuffix("\n")
    chance = random.Random(seed)
    at = 0
    while at < len(text):
        end = at + 1
        if at == 0 or text[at] == "\n":
            while end < len(text) and text[end] in " \t":
                end += 1
            median = LINE_S if at else JUMP_S
        else:
            median = KEY_S if text[at - 1].isalnum() and text[at].isalnum() else WORD_S
        pause_s = chance.lognormvariate(0, SIGMA) * median
        wrong = chance.choice(_WRONG) if chance.random() < 1 / WRONG_EVERY else ""
        yield Stroke(at, text[at:end], pause_s, wrong if text[at].isalnum() else "")
        at = end


def type_along(hunk: Hunk, n_keys: int, suggest: Callable[[str], str]) -> None:
    """Type the first keys of a hunk, none of them wrong. `suggest`: what the model suggests, given
    all that stands before the cursor. A key that goes on with the suggestion in view, but not to
    its end, asks for no other."""
    prefix, shown = hunk.prefix, ""
    for stroke in islice(strokes(hunk, 0), n_keys):
        prefix += stroke.text
        shown = shown[len(stroke.text) :] if shown.startswith(stroke.text) else ""
        shown = shown or suggest(prefix)
