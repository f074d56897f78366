"""A change of one line as a replacement of tokens, with as much of the line around it as is needed
to search for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from codespec.edits.line_tokens import has_word, is_word_character, raw_tokens, signs

MAX_REMOVED = 120
MAX_ADDED = 200
"""Characters. Longer ones are no substitution that anybody repeats."""
MAX_CONTEXT = 9
"""Tokens of context that are counted on one side."""
_MAX_MORE = 5
"""Tokens before the first one of the context that are taken in until there is a word."""
_MAX_ALIGNED = 900
"""Most products of old and new lines that are aligned."""
_NUMBER_PART = re.compile(r"\.|\d\w*")
_TELLING_NUMBER = re.compile(r"\d\w*(?:\.\d\w*){2,}|\d{4,}")
_LEAST_LIKENESS = 0.5
"""Share of tokens that two versions of a line have in common."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """Tokens of one line that were replaced.

    found: the text that is searched for: what was removed, or what stood around, where that alone
        holds no word. put: what stands in its place.
    removed, added: the same without what is equal in both.
    left, right: tokens of the line before and after `found`.
    at_start, at_end: `found` has to begin or to end the line.
    """

    found: str
    put: str
    removed: str
    added: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    at_start: bool
    at_end: bool
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        texts = self.found, self.put, self.left, self.right
        object.__setattr__(self, "_hash", hash((texts, self.at_start, self.at_end)))

    def __hash__(self) -> int:
        return self._hash


def substitution(old: str, new: str) -> Substitution | None:
    """The replacement that makes `new` out of `old`, two lines without indentation; None if there
    is none that can be searched for."""
    a, b = raw_tokens(old), raw_tokens(new)
    start, end, added = _differing(a, b)
    removed = "".join(a[start:end])
    if removed == added or len(removed) > MAX_REMOVED or len(added) > MAX_ADDED:
        return None
    first, last = (start, end) if has_word(removed) else _with_context(a, start, end)
    if not has_word("".join(a[first:last])):
        return None
    return _around(a, (start, end), added, (first, last), first == start and last == end)


def number_substitution(old: str, new: str) -> Substitution | None:
    """The replacement of a version, or of a number of four digits or more, of which a part changed
    between two lines without indentation: it is searched for wherever it stands. None for other
    changes."""
    a, b = raw_tokens(old), raw_tokens(new)
    start, end, added = _differing(a, b)
    first, last = start, end
    while first > 0 and _NUMBER_PART.fullmatch(a[first - 1]):
        first -= 1
    while last < len(a) and _NUMBER_PART.fullmatch(a[last]):
        last += 1
    number = "".join(a[first:last])
    if not added or number.endswith(".0.0") or not _TELLING_NUMBER.fullmatch(number):
        return None
    return _around(a, (start, end), added, (first, last), True)


def _differing(a: Sequence[str], b: Sequence[str]) -> tuple[int, int, str]:
    """(start, end, added): the range of tokens of `a` that others of `b` take the place of."""
    n_least = min(len(a), len(b))
    start = next((i for i in range(n_least) if a[i] != b[i]), n_least)
    n_least -= start
    n_tail = next((i for i in range(n_least) if a[-1 - i] != b[-1 - i]), n_least)
    return start, len(a) - n_tail, "".join(b[start : len(b) - n_tail])


def _around(
    a: Sequence[str], changed: tuple[int, int], added: str, whole: tuple[int, int], bare: bool
) -> Substitution:
    """The substitution of a range of tokens as part of a whole one. bare: that may stand anywhere
    in a line."""
    start, end = changed
    first, last = whole
    return Substitution(
        found="".join(a[first:last]),
        put="".join(a[first:start]) + added + "".join(a[end:last]),
        removed="".join(a[start:end]),
        added=added,
        left=tuple(token for token in a[:first] if not token.isspace()),
        right=tuple(token for token in a[last:] if not token.isspace()),
        at_start=not bare and start == 0,
        at_end=not bare and end == len(a),
    )


def _with_context(tokens: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """The range with a token on each side, and more before it until there is a word."""

    def before(at: int) -> int:
        at = max(0, at - 1)
        while at > 0 and tokens[at].isspace():
            at -= 1
        return at

    first, last = before(start), min(len(tokens), end + 1)
    while last < len(tokens) and tokens[last - 1].isspace():
        last += 1
    for _ in range(_MAX_MORE):
        if has_word("".join(tokens[first:last])):
            break
        first = before(first)
    return first, last


def occurrences(line: str, found: str, put: str) -> list[int]:
    """Places of `found` in a line, as whole words, without overlaps, and not where `put` stands
    already."""
    lead = put.find(found)
    places: list[int] = []
    at = line.find(found)
    while at >= 0:
        end = at + len(found)
        cuts_word = (is_word_character(found[0]) and is_word_character(line[at - 1 : at])) or (
            is_word_character(found[-1]) and is_word_character(line[end : end + 1])
        )
        is_done = lead >= 0 and at >= lead and line.startswith(put, at - lead)
        if cuts_word or is_done or _cuts_number(line, at, end):
            at = line.find(found, at + 1)
        else:
            places.append(at)
            at = line.find(found, end)
    return places


def _cuts_number(line: str, start: int, end: int) -> bool:
    """True if what begins or ends a range of a line is one part of a number with dots."""
    before, after = line[max(0, start - 2) : start + 1], line[end - 1 : end + 2]
    return any(
        len(around) == 3 and around[1] == "." and around[0].isdigit() and around[2].isdigit()
        for around in (before, after)
    )


def replaced(line: str, places: Sequence[int], found: str, put: str) -> str:
    """The line with `put` at these places instead of `found`."""
    parts: list[str] = []
    at = 0
    for place in places:
        parts += [line[at:place], put]
        at = place + len(found)
    return "".join(parts) + line[at:]


def agreeing(
    left: tuple[str, ...], right: tuple[str, ...], other: Substitution
) -> tuple[int, int, bool]:
    """(tokens that agree on the left, on the right, one more where both reach the line's end; all
    of the line agrees). left, right: tokens of a line around a place."""
    # The nearest tokens differ mostly.
    is_left, is_right = left[-1:] == other.left[-1:], right[:1] == other.right[:1]
    n_left = n_equal(reversed(left), reversed(other.left)) if is_left else 0
    n_right = n_equal(right, other.right) if is_right else 0
    to_start = n_left == len(left) == len(other.left)
    to_end = n_right == len(right) == len(other.right)
    n_left, n_right = min(n_left + to_start, MAX_CONTEXT), min(n_right + to_end, MAX_CONTEXT)
    return n_left, n_right, to_start and to_end


def n_equal(a: Iterable[str], b: Iterable[str]) -> int:
    """Length of the common beginning."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


def aligned(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs (i, j) of an old and a new line that are versions of each other, in order."""
    if len(old) == len(new):
        return [(i, i) for i in range(len(old))]
    if not old or not new or len(old) * len(new) > _MAX_ALIGNED:
        return []
    likeness = [[_likeness(a, b) for b in map(_counted, new)] for a in map(_counted, old)]
    return likeliest_pairs(likeness, _LEAST_LIKENESS)


def likeliest_pairs(likeness: Sequence[Sequence[float]], least: float) -> list[tuple[int, int]]:
    """Pairs (row, column), ascending in both, whose likeness is the greatest in sum. least: that of
    each pair."""
    i, j = len(likeness), len(likeness[0])
    best = [[0.0] * (j + 1) for _ in range(i + 1)]
    for row, of_row in enumerate(likeness):
        for column, like in enumerate(of_row):
            both = best[row][column] + like if like >= least else 0.0
            best[row + 1][column + 1] = max(best[row][column + 1], best[row + 1][column], both)
    pairs: list[tuple[int, int]] = []
    while i and j:
        like = likeness[i - 1][j - 1]
        if like >= least and best[i][j] == best[i - 1][j - 1] + like:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif best[i][j] == best[i - 1][j]:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


def _counted(line: str) -> Counter[str]:
    return Counter(signs(line))


def _likeness(a: Counter[str], b: Counter[str]) -> float:
    n_tokens = a.total() + b.total()
    return 2 * (a & b).total() / n_tokens if n_tokens else 0.0
