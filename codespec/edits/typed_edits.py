"""Finds out whether somebody types a proposed edit by hand: at its place, or the same at another
one, which agrees with it as well."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from codespec.edits.line_tokens import is_word_character
from codespec.edits.substitutions import number_substitution, substitution
from codespec.syntax.text import common_prefix, common_suffix


class Typed(Enum):
    """How much of an edit was typed: all of it, a beginning, or something else."""

    WHOLE = "whole"
    PART = "part"
    OTHER = "other"


class ChangedSpan(NamedTuple):
    """Difference of two texts: the characters start..end - 1 of the first one. n_more:
    characters that the second one has more, may be negative."""

    start: int
    end: int
    n_more: int

    def moved(self, start: int, end: int) -> int | None:
        """The place in the second text of characters start..end - 1 of the first one; None where
        some of them changed."""
        if end <= self.start:
            return start
        return start + self.n_more if start >= self.end else None


def changed_span(before: str, after: str) -> ChangedSpan:
    """The least span that holds all differences of two texts."""
    start = common_prefix(before, after)
    n_tail = common_suffix(before, after, min(len(before), len(after)) - start)
    return ChangedSpan(start, len(before) - n_tail, len(after) - len(before))


def typed(before: str, after: str, old: str, new: str) -> Typed:
    """How much of the edit that replaces `old` with `new` was typed from one text of a document to
    another, wherever the same could be done. Line ends are \\n."""
    sought, put = _tokens(old, new)
    span = changed_span(before, after)
    found = Typed.OTHER
    for at in _covering(before, sought, span):
        there = after[at : at + len(sought) + span.n_more]
        if not sought:
            there = there.strip()
        if there == put:
            return Typed.WHOLE
        if _leads_to(there, sought, put):
            found = Typed.PART
    return found


def _tokens(old: str, new: str) -> tuple[str, str]:
    """(the text that is replaced, that instead): the number of one line that differs, or its
    tokens that do, with a word among them; whole lines, without white space around them, where
    there are none."""
    old, new = old.strip(), new.strip()
    if not old or not new or "\n" in old + new:
        return old, new
    made = number_substitution(old, new) or substitution(old, new)
    return (made.found, made.put) if made is not None else (old, new)


def _covering(text: str, sought: str, span: ChangedSpan) -> Iterator[int]:
    """Places of a text, as whole words, in which all of a span lies."""
    at = text.find(sought, max(0, span.end - len(sought)))
    while 0 <= at <= span.start:
        end = at + len(sought)
        cuts_word = bool(sought) and (
            (is_word_character(sought[0]) and is_word_character(text[at - 1 : at]))
            or (is_word_character(sought[-1]) and is_word_character(text[end : end + 1]))
        )
        if not cuts_word:
            yield at
        at = text.find(sought, at + 1)


def _leads_to(there: str, sought: str, put: str) -> bool:
    """True if `sought` looks like this while `put` is typed over it: its end is deleted, or it is
    typed from the front, before what is left of `sought`, or before brackets that an editor
    closed."""
    if sought.startswith(there):
        return True
    rests = (there[n:] for n in range(common_prefix(there, put) + 1))
    return any(sought.endswith(rest) or put.endswith(rest) for rest in rests)
