"""The measure of a right next edit: the commit's own hunks that are not made yet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from codespec.edits.substitutions import likeliest_pairs

Lines: TypeAlias = "tuple[str, ...]"
Substitution: TypeAlias = "tuple[Lines, Lines]"
"""Tokens of a line that others take the place of; or lines of a hunk, with their indentation to
one another, where old and new ones are not versions of each other."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    abstract and as async await break case catch class const continue def default defer del
    do elif else enum except export extends final finally fn for from func function go if
    impl implements import in instanceof interface is let match mod mut namespace new not or
    package pass private protected pub public raise return static struct super switch
    template throw throws trait try type typedef typename typeof use using var void where
    while with yield
        """,
    )
)
_ALIKE = 0.5
"""Share of their tokens that two versions of a line have in common, at least."""
_MAX_PAIRS = 900
"""Pairs of lines that are compared to find versions of each other."""


@dataclass(frozen=True, slots=True)
class PlacedLines:
    """Lines that others take the place of, in a text as it is now: none of them equal at either
    end.

    line: from 0. n_up: lines by which an insertion or a deletion can slide up and leave the same
    text.
    """

    path: str
    line: int
    old: Lines
    new: Lines
    n_up: int = 0

    @property
    def end(self) -> int:
        return self.line + len(self.old)

    @property
    def highest(self) -> PlacedLines:
        """The same as high up as it can be said."""
        old, new, n = self.old, self.new, self.n_up
        if not n:
            return self
        turned = (old or new)[len(old or new) - n % len(old or new) :]
        turned += (old or new)[: len(old or new) - n % len(old or new)]
        return PlacedLines(self.path, self.line - n, turned if old else (), () if old else turned)


def placed(path: str, line: int, old: Lines, new: Lines, text: Sequence[str]) -> PlacedLines:
    """Such a change of these lines, by the least lines that say it."""
    n, m = n_equal(old, new)
    line, old, new = line + n, old[n : len(old) - m], new[n : len(new) - m]
    n = 0
    if not old or not new:
        moved = old or new
        while moved and n < line and text[line - 1 - n] == moved[-1 - n % len(moved)]:
            n += 1
    return PlacedLines(path, line, old, new, n)


def matched(proposal: PlacedLines, outstanding: Iterable[PlacedLines]) -> PlacedLines | None:
    """The outstanding hunk that a proposal makes, wholly or by one of its runs of lines; None for a
    wrong proposal."""
    near = [hunk for hunk in outstanding if hunk.path == proposal.path]
    whole = (hunk for hunk in near if hunk.highest == proposal.highest)
    return next(whole, None) or next((h for h in near if rest_of(h, proposal) is not None), None)


def rest_of(hunk: PlacedLines, made: PlacedLines) -> list[PlacedLines] | None:
    """The lines left of a hunk once a part of it was made, in the text after that; [] where nothing
    is, None for what is no part of it. A part takes away lines of a hunk that only deletes, or puts
    a run of the new lines in the place of the old ones that these are versions of."""
    if hunk.path != made.path:
        return None
    if hunk.highest == made.highest:
        return []
    start, end = made.line - hunk.line, made.end - hunk.line
    if not made.old or start < 0 or end > len(hunk.old):
        return None
    if not hunk.new:
        return _rest(hunk, made, start, 0) if not made.new else None
    pairs = aligned(hunk.old, hunk.new)
    for first in range(len(hunk.new) - len(made.new) + 1) if made.new else ():
        last = first + len(made.new)
        if hunk.new[first:last] == made.new and all(
            (start <= i < end) == (first <= j < last) and (i < start) == (j < first)
            for i, j in pairs
        ):
            return _rest(hunk, made, start, first)
    return None


def _rest(hunk: PlacedLines, made: PlacedLines, start: int, first: int) -> list[PlacedLines]:
    above = replace(hunk, old=hunk.old[:start], new=hunk.new[:first], n_up=0)
    below = replace(
        hunk,
        line=made.line + len(made.new),
        old=hunk.old[start + len(made.old) :],
        new=hunk.new[first + len(made.new) :],
        n_up=0,
    )
    return [part for part in (above, below) if part.old or part.new]


def aligned(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Pairs (index of an old line, of a new one) that are versions of each other, ascending in
    both: all of them where there are equally many, else those that have most tokens in common."""
    if len(old) == len(new):
        return [(i, i) for i in range(len(old))]
    if not old or not new or len(old) * len(new) > _MAX_PAIRS:
        return []
    return likeliest_pairs([[_likeness(a, b) for b in new] for a in old], _ALIKE)


def substitutions(old: Lines, new: Lines) -> Iterator[Substitution]:
    """The token substitutions that a hunk makes, of those with an identifier or a literal in what
    they take away or put there."""
    pairs = aligned(old, new)
    for i, j in pairs:
        a, b = _TOKEN.findall(old[i]), _TOKEN.findall(new[j])
        n, m = n_equal(a, b)
        made = tuple(a[n : len(a) - m]), tuple(b[n : len(b) - m])
        if _says_something(made):
            yield made
    if len(pairs) < max(len(old), len(new)):
        made = _level(old), _level(new)
        if _says_something(made):
            yield made


def n_equal(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """How many are equal at the beginning, and of the rest at the end."""
    n = m = 0
    least = min(len(a), len(b))
    while n < least and a[n] == b[n]:
        n += 1
    while m < least - n and a[-1 - m] == b[-1 - m]:
        m += 1
    return n, m


def _says_something(made: Substitution) -> bool:
    tokens = (token for side in made for text in side for token in _TOKEN.findall(text))
    return any(
        (token[0].isalnum() or token[0] == "_") and token not in _KEYWORDS for token in tokens
    )


def _level(lines: Lines) -> Lines:
    """The lines without the indentation that all of them have."""
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return tuple(line[depth:].rstrip() for line in lines)


def _likeness(a: str, b: str) -> float:
    """Share of both lines' tokens that they have in common, 0 to 1."""
    x, y = Counter(_TOKEN.findall(a)), Counter(_TOKEN.findall(b))
    n = x.total() + y.total()
    return 2 * (x & y).total() / n if n else 0.0
