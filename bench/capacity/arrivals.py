"""Requests of people who type at once: keystrokes of a history's edits, see `keystrokes`.

Each person writes hunks of the history, drawn by chance, one after the other. After each key the
editor waits (`DEBOUNCE_S`), and asks if no other key came, unless what is in view goes on with the
key. The next key cancels. Nothing is asked after a deletion.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codespec.config import Settings

from ..history import Hunk
from ..keystrokes import KEY_S, strokes

DEBOUNCE_S = 0.05
LOCAL = 0.35
"""Share of keys that what is in view goes on with: they ask for nothing. An assumption."""
MOST_OUT = 64
CHARS_A_TOKEN = 3.4
"""Characters of Python code in a token of Qwen2's, on average."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    person, at_s: who asks, and when, in seconds. until_s: when the next key cancels it.
    above:  tokens of the prompt up to the cursor's line. right: of what stands after the cursor.
    line:   of the line so far; these come last, see docs/dev/prompt.md.
    n_common: tokens with which this person's previous prompt begins, too.
    n_out:  tokens to the end of the text that is wanted.
    hunk, end: place in the hunk's text, for who plays it.
    """

    person: int
    at_s: float
    until_s: float
    above: int
    right: int
    line: int
    n_common: int
    n_out: int
    hunk: Hunk
    end: int

    @property
    def n_prompt(self) -> int:
        return self.above + self.right + self.line


def asks_of(
    hunks: Sequence[Hunk], n_people: int, seconds: float, seed: int, local: float = LOCAL
) -> list[Ask]:
    """Requests of so many people in so many seconds, by time. A person's requests do not depend on
    how many others there are."""
    found = [
        ask for person in range(n_people) for ask in _of_one(hunks, person, seconds, seed, local)
    ]
    return sorted(found, key=lambda ask: (ask.at_s, ask.person))


def _of_one(
    hunks: Sequence[Hunk], person: int, seconds: float, seed: int, local: float
) -> Iterator[Ask]:
    chance = random.Random(f"{seed} {person}")
    now = 0.0
    # In the middle of a hunk: not all begin at once with prompts that nobody has read.
    hunk = chance.choices(hunks, [len(hunk.text) for hunk in hunks])[0]
    keys = list(_keys(hunk, chance))
    keys = keys[chance.randrange(len(keys)) :]
    above, _, line = _tokens(hunk, keys[0][0])
    before: tuple[int, int] | None = above, line
    while True:
        for (end, pause_s, asks), after in zip(keys, [*keys[1:], None], strict=True):
            now += pause_s
            next_s = after[1] if after is not None else 1.5
            if now >= seconds:
                return
            if not asks or next_s < DEBOUNCE_S or chance.random() < local:
                continue
            above, right, line = _tokens(hunk, end)
            if before is None:
                n_common = 0
            elif before[0] == above:
                n_common = above + right + min(before[1], line)
            else:
                n_common = min(before[0], above)
            before = above, line
            yield Ask(
                person, now + DEBOUNCE_S, now + next_s, above, right, line, n_common,
                n_out(hunk, end), hunk, end,
            )  # fmt: skip
        hunk, before = chance.choice(hunks), None
        keys = list(_keys(hunk, chance))


def _keys(hunk: Hunk, chance: random.Random) -> Iterator[tuple[int, float, bool]]:
    """(characters of the hunk that stand there after the key, pause before it, whether it may
    ask)."""
    for stroke in strokes(hunk, chance.randrange(1 << 30)):
        if not stroke.wrong:
            yield stroke.end, stroke.pause_s, True
            continue
        yield stroke.at, stroke.pause_s, True
        yield stroke.at, KEY_S, False
        yield stroke.end, KEY_S, True


def _tokens(hunk: Hunk, end: int) -> tuple[int, int, int]:
    """(above, right, line) of the prompt, within the default windows."""
    window = Settings().completion
    typed = hunk.text[:end]
    n_line = len(typed) - (typed.rfind("\n") + 1)
    n_above = len(hunk.prefix) + len(typed) - n_line
    above = min(window.n_prefix_tokens, round(n_above / CHARS_A_TOKEN))
    right = min(window.n_suffix_tokens, round(len(hunk.suffix) / CHARS_A_TOKEN))
    return above, right, max(1, round(n_line / CHARS_A_TOKEN))


def n_out(hunk: Hunk, end: int) -> int:
    """Tokens to the end of what is suggested: the line, or from its beginning the lines up to an
    empty one."""
    rest = hunk.text[end:]
    has_begun = bool(hunk.text[:end].rpartition("\n")[2].strip())
    unit = rest.partition("\n" if has_begun else "\n\n")[0]
    return max(1, min(MOST_OUT, round(len(unit) / CHARS_A_TOKEN) + 1))
