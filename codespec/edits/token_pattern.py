"""Tokens replaced, inserted or deleted on a line: the same tokens on other lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from codespec.edits.import_lists import in_order_again
from codespec.edits.line_tokens import indentation, is_import, signs
from codespec.edits.pattern import FittingPlace, Pattern
from codespec.edits.searched_text import SearchedText
from codespec.edits.substitutions import Substitution, agreeing, occurrences, replaced

_N_MAKINGS = 6
"""The latest makings whose context is compared."""
_N_OCCURRENCES = 4
"""Occurrences on a line whose context is compared."""
_WORST = _N_OCCURRENCES
"""A rank above all others."""


class _Fit(NamedTuple):
    """A place, see `FittingPlace`. which: index of its making among the latest ones."""

    line: int
    new: tuple[str, ...]
    which: int
    n_left: int
    n_right: int
    whole: bool
    n_occurrences: int
    is_one: bool


class _HoldingLine(NamedTuple):
    """A line that holds the old text. starts: of its occurrences. around: tokens before and after
    each of the first ones. all_new: the line with all of them replaced."""

    number: int
    before: str
    body: str
    after: str
    starts: list[int]
    around: list[tuple[tuple[str, ...], tuple[str, ...]]]
    all_new: tuple[str, ...]


class _Likest(NamedTuple):
    """The occurrence of each line around which most agrees. ranks: how well, the least is the best.
    details: (occurrence, tokens that agree on the left, on the right, all of the line does)."""

    ranks: list[int]
    details: list[tuple[int, int, int, bool]]


class TokenPattern(Pattern):
    """A substitution, wherever its old text stands."""

    kind: ClassVar[str] = "replace"

    def __init__(self, substitution: Substitution) -> None:
        super().__init__(substitution.removed, substitution.added, substitution.found)
        self._put = substitution.put
        self._at_start, self._at_end = substitution.at_start, substitution.at_end

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        recent = self.makings[-_N_MAKINGS:]
        made = tuple(making.substitution for making in recent if making.substitution)
        wanted = self.needle, self._put, self._at_start, self._at_end

        def fits_of() -> list[_Fit]:
            lines: list[_HoldingLine] = text.found_once(wanted, lambda: list(self._holding(text)))
            likest = [text.found_once((*wanted, of), partial(_likest, lines, of)) for of in made]
            ranks = zip(*(each.ranks for each in likest), strict=True)
            best = [of_line.index(min(of_line)) for of_line in ranks]
            return [
                fit
                for i, (line, which) in enumerate(zip(lines, best, strict=True))
                for fit in self._fits(line, which, *likest[which].details[i])
            ]

        fits: list[_Fit] = text.found_once((*wanted, made), fits_of)
        for line, new, which, n_left, n_right, whole, n, is_one in fits:
            yield FittingPlace(line, 1, new, recent[which], n_left, n_right, whole, n, is_one)

    def _holding(self, text: SearchedText) -> Iterator[_HoldingLine]:
        for number in text.find(self.needle):
            line = text.lines[number]
            body = line.strip()
            starts = occurrences(body, self.needle, self._put)
            if self._at_start:
                starts = [at for at in starts if at == 0]
            if self._at_end:
                starts = [at for at in starts if at + len(self.needle) == len(body)]
            if not starts:
                continue
            around = [
                (signs(body[:start]), signs(body[start + len(self.needle) :]))
                for start in starts[:_N_OCCURRENCES]
            ]
            before, after = indentation(line), line[len(line.rstrip()) :]
            new = self._new(before, body, after, starts)
            yield _HoldingLine(number, before, body, after, starts, around, new)

    def _fits(
        self,
        line: _HoldingLine,
        which: int,
        occurrence: int,
        n_left: int,
        n_right: int,
        whole: bool,
    ) -> Iterator[_Fit]:
        n = len(line.starts)
        yield _Fit(line.number, line.all_new, which, n_left, n_right, whole, n, False)
        if n > 1:
            new = self._new(line.before, line.body, line.after, [line.starts[occurrence]])
            yield _Fit(line.number, new, which, n_left, n_right, whole, n, True)

    def _new(self, before: str, body: str, after: str, starts: Sequence[int]) -> tuple[str, ...]:
        new = replaced(body, starts, self.needle, self._put)
        if is_import(body):
            new = in_order_again(body, new)
        new = before + new + after
        return (new,) if new.strip() else ()


class InsertedTokens(TokenPattern):
    """Tokens inserted beside tokens that stand elsewhere, too."""

    kind: ClassVar[str] = "insert"


class DeletedTokens(TokenPattern):
    """Tokens deleted that stand elsewhere, too."""

    kind: ClassVar[str] = "delete"


def token_pattern(substitution: Substitution) -> TokenPattern:
    """The pattern of a substitution."""
    if not substitution.removed:
        return InsertedTokens(substitution)
    return TokenPattern(substitution) if substitution.added else DeletedTokens(substitution)


def _likest(lines: Sequence[_HoldingLine], made: Substitution) -> _Likest:
    """The occurrences around which most is as it was where `made` was made."""
    likest = _Likest([], [])
    for line in lines:
        best, detail = _WORST, (0, 0, 0, False)
        for occurrence, (left, right) in enumerate(line.around):
            n_left, n_right, whole = agreeing(left, right, made)
            rank = occurrence - _N_OCCURRENCES * (n_left + n_right)
            if rank < best:
                best, detail = rank, (occurrence, n_left, n_right, whole)
        likest.ranks.append(best)
        likest.details.append(detail)
    return likest
