"""Loops of a text: what a model says again and again, and lines of above once more."""

from __future__ import annotations

import re
from itertools import pairwise

from codespec.suggest import words
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import has_words, indentation, tells

_IN_LINE_LOOP = re.compile(r"(?P<unit>[^\n]{1,40}?)(?P=unit){4,}(?P<tail>[^\n]{0,40})\Z")
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}|(?<=[A-Za-z_])\d{1,9}")
# What opens a block, is no element and no value with a name, and has two words at least.
_HEAD = re.compile(r"\s*(?!\w+\s*[:=])\w[^\n]*\s[^\n]*(?:[:{]|\bdo|\bthen|->|=>)\s*\Z")
_ENDS_HEAD = (":", "{", "do", "then", "->", "=>")
_OPENS = re.compile(r"[(\[{:,]\s*\Z|[-+*=>|&]\s*\Z")
_LETTER = re.compile(r"[^\W\d_]")
# Signs that no line is drawn with.
_SIGNS = re.compile(r"([:,?(\[{&$@'])\1{15,}")
_MIN_SIGNS = 16
"""Signs in a row that are no sentence's."""
_MAX_HEAD = 200
"""Characters of a line that opens a block."""
_MIN_COUNTED = 6
"""Numbers that are counted where nobody wants the next."""
_MAX_NUMBERS = 200
MAX_CYCLE = 8
"""Lines of a loop that is recognised as one."""


def without_lines_above(candidate: Candidate) -> str:
    """Nothing, where the text is the line above once more, or several lines; not where they stand
    there twice, as data may."""
    text, place = candidate.text, candidate.place
    if place.rest.strip():
        return text
    above = [line.rstrip() for line in place.above if line.strip()][-2 * MAX_CYCLE :]
    lines = [line.rstrip() for line in f"{place.line_prefix}{text}".split("\n")]
    lines = [line for line in lines if line.strip()][:MAX_CYCLE]
    if not text.strip() or not above or not lines:
        return text
    for n in range(1, len(lines) + 1):
        again = _are_again(above[-n:], lines[:n]) and above[-2 * n : -n] != above[-n:]
        if again and all(map(_LETTER.search, lines[:n])) and any(map(tells, lines[:n])):
            return ""
    return text


def _are_again(above: list[str], lines: list[str]) -> bool:
    """True if lines are those above, or further in, where none of those opens anything."""
    # A comma between elements is none of theirs.
    if [line.strip().rstrip(",") for line in above] != [line.strip().rstrip(",") for line in lines]:
        return False
    steps = {indentation(b) - indentation(a) for a, b in zip(above, lines, strict=True)}
    return steps == {0} or (
        len(steps) == 1 and min(steps) > 0 and not any(map(_OPENS.search, above))
    )


def without_loops(candidate: Candidate, *, finished: bool) -> str:
    """The text with once what a model says again and again: a line that comes three times in a row,
    or several that come twice, what nests in itself, signs, and, where the text was cut off, the
    end of a line that repeats itself or counts on."""
    text, place = candidate.text, candidate.place
    lines = text.split("\n")
    whole = [place.line_prefix + lines[0], *lines[1:]]
    told = [line.lstrip() for line in whole if has_words(line)]
    for i in range(len(lines) if len(set(told)) < len(told) else 0):
        for period in range(1, MAX_CYCLE + 1):
            may_loop = period > 1 or not words.ends(whole[i], place.language)
            is_loop = may_loop and _comes_again(whole[i:], period)
            if is_loop or (has_words(whole[i]) and _nests(whole[i:], period)):
                return "\n".join(lines[: i + period]).rstrip()
    above = next((line for line in reversed(place.above) if line.strip()), "")
    nested = _nested_heads([above, *whole])
    if nested is not None:
        outer, inner = nested
        # A head without its body is none; the one above is the user's.
        return "\n".join(lines[: (outer or inner) - 1]).rstrip()
    if signs := _SIGNS.search(text):
        return text[: signs.start()].rstrip()
    return text if finished else _without_open_loop(text)


def _nested_heads(lines: list[str]) -> tuple[int, int] | None:
    """Numbers of two lines with the same words of which the second opens a block directly in that
    of the first, or in blocks directly in it; None for none."""
    around: list[int] = []  # heads, each directly in the one before
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        is_head = line.rstrip().endswith(_ENDS_HEAD) and len(line) <= _MAX_HEAD
        if not is_head or not _HEAD.match(line):
            around = []
            continue
        if around and indentation(line) <= indentation(lines[around[-1]]):
            around = []
        for head in around:
            if lines[head].strip() == line.strip():
                return head, i
        around.append(i)
    return None


def _without_open_loop(text: str) -> str:
    """The text of which the end is missing, without what it says there again and again, or counts:
    that has no end of its own."""
    loop = _IN_LINE_LOOP.search(text)
    if loop and loop["unit"].startswith(loop["tail"]):
        if has_words(loop["unit"]):
            return text[: loop.start() + len(loop["unit"])]
        if len(loop[0]) >= _MIN_SIGNS and loop["unit"].strip():
            return text[: loop.start()].rstrip()
    counted = _counted(text)
    if counted is None:
        return text
    start, again = counted
    newline = text.rfind("\n", start, again)
    # Numbers of a list say nothing; the first of many lines may.
    return text[: start if newline < 0 else newline].rstrip()


def _counted(text: str) -> tuple[int, int] | None:
    """(index of the first number of those that the text counts up or down to its end, with the same
    text between them; index of the one where that begins to come again). None for none."""
    found = list(_NUMBER.finditer(text))[-_MAX_NUMBERS:]
    between = [text[a.end() : b.start()] for a, b in pairwise(found)]
    numbers = [int(number[0]) for number in found[:-1]]  # the last one may go on
    for period in (1, 2, 3):
        if len(numbers) < period * _MIN_COUNTED:
            break
        if not between[-period].startswith(text[found[-1].end() :]):
            continue
        steps = [b - a for a, b in zip(numbers, numbers[period:], strict=False)]
        first = len(numbers)
        while first > 0 and all(
            at + period >= len(values) or values[at] == values[at + period]
            for values, at in ((steps, first - 1), (between, first - 1))
        ):
            first -= 1
        if any(steps[first:]) and len(numbers) - first >= period * _MIN_COUNTED:
            return found[first].start(), found[first + period].start()
    return None


def _comes_again(lines: list[str], period: int) -> bool:
    """True if the first `period` lines, up to blank ones at their end, come twice, a single one
    three times."""
    cycle = lines[:period]
    if period == 1:
        return has_words(cycle[0]) and lines[:3] == 3 * cycle
    while cycle and not cycle[-1].strip():
        cycle.pop()
    begins = len(cycle) >= 2 and lines[0].strip()[:1] not in ("", ")", "]", "}")
    return begins and lines[period : period + len(cycle)] == cycle and any(map(has_words, cycle))


def _nests(lines: list[str], period: int) -> bool:
    """True if the first `period` lines come four times, each time as much further in: less often is
    how data and mark-up may well look."""
    n = 4 * period
    if len(lines) < n or lines[0].lstrip() != lines[period].lstrip():
        return False
    step = indentation(lines[period]) - indentation(lines[0])
    return step > 0 and all(
        later.lstrip() == line.lstrip()
        and (not line.strip() or indentation(later) - indentation(line) == step)
        for line, later in zip(lines, lines[period:n], strict=False)
    )
