"""Blocks that words open and close: in statements, and where their body may stand in the column of
their head, so that words are counted."""

from __future__ import annotations

import re

from codespec.languages.registry import record_of
from codespec.suggest import words
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import Place, indentation
from codespec.syntax.lexer import Lexed

# A head over lines; of these languages none has another meaning for what is not its own.
_HEAD_ENDS_NOT = re.compile(r"(?:[,\\|&=]|\b(?:and|or|not|in|when))$")
_HEAD_GOES_ON = re.compile(r"[ \t]*(?:when\b|\|\||&&)")


def is_block(head: Candidate) -> bool:
    """True if the first lines of a statement, up to where they balance, open a block."""
    text = head.head.lstrip("\n")
    lines = text.split("\n") if record_of(head.place.language).words is not None else []
    end = len(head.head) - len(text) - 1
    for n, line in enumerate(lines, 1):
        end += 1 + len(line)
        found = head.line.upto(end)
        code = words.in_one_line(found.code)
        if words.opened(code, head.place.language, begins=True):
            return True
        is_head = found.is_open or found.inside or _HEAD_ENDS_NOT.search(code)
        if not is_head and not _HEAD_GOES_ON.match("".join(lines[n : n + 1])):
            return False
    return False


def is_ended(head: Candidate) -> bool:
    """True if the last line of a statement ends a block that a word in the first ones opens."""
    first, _, last = head.head.lstrip("\n").partition("\n")
    last = last.rpartition("\n")[2]
    return (
        words.ends(last, head.place.language)
        and indentation(last) == indentation(first)
        and not words.opened(head.line.code, head.place.language)
        and is_block(head)
    )


def is_closed(place: Place, indent: int, closer: str) -> bool:
    """True if the block that the cursor's line, or the last one above it, opens is closed below.

    indent: of its head. closer: as `words.opened` says it.
    """
    if words.is_named(closer, place.language):
        above = words.named_left(place.prefix, place.language, closer)[0]
        return 0 < above <= words.named_left(place.suffix, place.language, closer)[1]
    head = [place.line] if place.line_prefix.strip() else []
    opened, _ = words.left_open([*place.lines_above, *head], place.language, brackets=False)
    n_open = sum(indentation(line) == indent for line in opened)
    n_closed = depth = 0
    for n, line in enumerate(place.below):
        if line.strip() and indentation(line) < indent:
            break
        step = _step(place.lines_below[n])
        depth += step
        if depth < 0:
            n_closed, depth = n_closed + (indentation(line) == indent), 0
    return 0 < n_open <= n_closed


def _step(line: Lexed) -> int:
    """The blocks that a line opens, less those that it ends."""
    if words.goes_on(line.text, line.language):
        return -1 if words.ends(line.text, line.language) else 0
    return 1 if words.opened(line.code, line.language, begins=True) else 0


class CountedBlock:
    """The end of a block in a text that grows. Each of its lines is read once."""

    def __init__(self, first: Lexed, start: int, lead: str, column: int, closer: str) -> None:
        """first: a text from which a line is read on. start: of the line below the block's head in
        the text. lead: what stands before it. column: of the head. closer: as `words.opened` says
        it."""
        self._first = first
        self._start = start
        self._lead = lead
        self._column = column
        self._is_named = words.is_named(closer, first.language)
        self._steps: dict[str, int] = {}

    def _lines(self, text: str) -> list[str]:
        """The lines below the head that are whole."""
        return (self._lead + text[self._start :]).split("\n")[:-1]

    def is_level(self, text: str) -> bool | None:
        """True if the block's body stands in the column of its head, or further out, or if what
        ends it says what it ends; None where that is not known yet."""
        if self._is_named:
            return True
        line = next((line for line in self._lines(text) if line.strip()), None)
        if line is None:
            return None
        is_word = words.goes_on(line, self._first.language)
        return indentation(line) <= self._column and not is_word

    def end(self, text: str, *, closes: bool) -> int | None:
        """The end of the block in the text, None where it is not known yet.

        closes: the line that ends the block belongs to it.
        """
        depth, at = 1, self._start - len(self._lead)
        for line in self._lines(text):
            step = self._steps.get(line)
            if step is None:
                step = self._steps[line] = _step(self._first.became(line))
            depth += step
            if depth == 0:
                end = at + len(line) if closes else max(0, at - 1)
                return len(text[:end].rstrip())
            at += len(line) + 1
        return None
