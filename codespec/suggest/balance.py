"""The judge where there is no grammar: brackets, and words that open and close blocks, have to
balance with a suggestion in its place.

The cursor's line is asked first. A text that closes more than its line opens may close what is open
above, which the whole document tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import takewhile

from codespec.languages.registry import record_of
from codespec.suggest import words
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import MAX_LINES, Place, indentation
from codespec.suggest.trials import once
from codespec.syntax import markup
from codespec.syntax.closers import closer_of_pair
from codespec.syntax.lexer import Lexed, line_of_document

_CODE = re.compile(r"[{}]|<%|%>|=[\"']")
# Templates and tags that are whole. Of a bounded length: from an opener that nothing closes, all of
# the line would be read, and so again from each of them.
_WHOLE = re.compile(
    r"<%.{0,999}?%>|\{\{.{0,999}?\}\}|\{%.{0,999}?%\}|\{[^{}]*\}"
    r"|<(?:[^<>{}\"']|\{[^{}]*\}|\"[^\"]*\"|'[^']*')*>"
)
_MAX_TAG_LINES = 40
"""Lines above the cursor's in which its tag may begin."""
_MAX_UNMATCHED = 200
"""Brackets above or below: with more, it is not the document that tells."""


def balances(place: Place) -> Callable[[Candidate], bool]:
    """A judge of variants of the suggestion for one place."""
    keeps_string = _keeps_string(place)
    if record_of(place.language).prose or _is_between_tags(place):
        return keeps_string

    def imbalance(line: Lexed) -> int:
        return len(line.open) + len(line.extra)

    @once
    def around() -> tuple[Lexed, str]:
        """The brackets above and below that match no other."""
        above = line_of_document(place.all_above.unmatched, place.language)
        return above, place.all_below.unmatched

    def imbalance_around(line: Lexed) -> tuple[int, int]:
        """(brackets that close nothing, up to the end of what the cursor's line becomes; all of the
        document that match no other)."""
        above, below = around()
        upper = above.then(f"{line.text}\n")
        return len(upper.extra), len(upper.then(below).unmatched)

    def keeps_around(line: Lexed, *, unknown: bool = True) -> bool:
        """True if all that the line closes is open above, and not closed below, as far as it is
        now. unknown: the answer where the document does not tell."""
        above, below = around()
        if len(above.text) + len(below) > _MAX_UNMATCHED:
            return unknown
        before, after = imbalance_around(place.whole_line), imbalance_around(line)
        return after[0] <= before[0] and after[1] <= before[1]

    before = imbalance(place.whole_line)
    floor = indentation(place.line_prefix)

    def fits(variant: Candidate) -> bool:
        if not keeps_string(variant):
            return False
        # Text that opens a block on its last line is not at fault.
        last = variant.head.rsplit("\n", 1)[-1]
        opens = indentation(last) >= floor and last.rstrip().endswith(("{", "(", "["))
        line = variant.whole
        if len(line.extra) < len(place.whole_line.extra) and not opens and not keeps_around(line):
            return False  # what closes a bracket above would close one of the line
        return imbalance(line) <= before + opens or keeps_around(line, unknown=False)

    return fits


def _is_between_tags(place: Place) -> bool:
    """True if the cursor is in text of mark-up: in no tag, and in no template."""
    if not record_of(place.language).is_markup:
        return False
    if any(_CODE.search(_WHOLE.sub("", side)) for side in (place.line_prefix, place.rest)):
        return False
    above = "\n".join((*place.above[-_MAX_TAG_LINES:], place.line_prefix))
    opened, _ = markup.read(above)
    return not opened or opened[-1].is_whole


def _keeps_string(place: Place) -> Callable[[Candidate], bool]:
    """A judge that refuses what closes the string which is closed right after the cursor."""
    facts, quote = record_of(place.language), place.rest[:1]
    if not facts.prose and not facts.is_markup:
        inside = place.line.inside
        is_given = inside not in ("", "comment") and place.rest.startswith(inside)
        return lambda variant: not is_given or variant.line.inside == inside
    is_open = quote in ("'", '"', "`") and _n_quotes(place.line_prefix, quote) % 2 == 1
    return lambda variant: not is_open or _n_quotes(variant.text, quote) % 2 == 0


def _n_quotes(text: str, quote: str) -> int:
    """Number of quotes; an apostrophe in a word is none."""
    return len(re.findall(rf"(?<!\w){quote}|{quote}(?!\w)", text))


def blocks_balance(place: Place) -> Callable[[Candidate], bool]:
    """A judge as `balances`: no more blocks of words, or elements, may be left open, or closed that
    are not open, than without the suggestion: between the lines that are indented less, or in all
    of a short document. Text within a template's signs may open one."""
    known = _ElementsAround if record_of(place.language).is_markup else _BlocksAround
    indent = indentation(f"{place.line_prefix}x")

    def is_inside(line: str) -> bool:
        return not line.strip() or indentation(line) >= indent

    def n_inside(lines: Iterable[str]) -> int:
        return sum(1 for _ in takewhile(is_inside, lines))

    def nearby() -> _ElementsAround | _BlocksAround:
        return known(place, n_inside(reversed(place.above)), n_inside(place.below))

    def document() -> _ElementsAround | _BlocksAround:
        return known(place, len(place.above), len(place.below))

    is_short = max(len(place.above), len(place.below)) < MAX_LINES
    around = [once(nearby), once(document)][: 1 + is_short]
    opens = bool(closer_of_pair(place.line_prefix, place.rest, record_of(place.language)))

    def fits(variant: Candidate) -> bool:
        return any(lines().gains(variant.whole) <= opens for lines in around)

    return fits


class _ElementsAround:
    """Elements of lines around the cursor's."""

    def __init__(self, place: Place, n_above: int, n_below: int) -> None:
        self._above = place.above[len(place.above) - n_above :]
        self._below = place.below[:n_below]
        self._before = self._n_unmatched(place.whole_line)

    def gains(self, line: Lexed) -> int:
        """How many more are left open, or closed that are not open, with another line at the
        cursor."""
        return self._n_unmatched(line) - self._before

    def _n_unmatched(self, line: Lexed) -> int:
        return markup.n_unmatched("\n".join((*self._above, line.text, *self._below)))


class _BlocksAround:
    """Blocks of words of lines around the cursor's. Lines above are read once, those below once for
    each way in which they may begin."""

    def __init__(self, place: Place, n_above: int, n_below: int) -> None:
        self._above = words.Blocks(place.language, brackets=False)
        for line in place.lines_above[len(place.above) - n_above :]:
            self._above.read(line)
        self._place = place
        self._n_below = n_below
        self._n_unmatched: dict[tuple[int, int, int, str], int] = {}
        self._before = self._upto_end_of(place.whole_line)

    def gains(self, line: Lexed) -> int:
        """How many more blocks are left open, or closed that are not open, with another line at the
        cursor."""
        blocks = self._upto_end_of(line)
        if blocks.state == self._before.state:
            return 0
        return self._with_below(blocks) - self._with_below(self._before)

    def _upto_end_of(self, line: Lexed) -> words.Blocks:
        blocks = self._above.copy()
        for part in line.code_lines:
            blocks.read(part)
        return blocks

    def _with_below(self, blocks: words.Blocks) -> int:
        """The number of those that match no other, from lines above to lines below."""
        begun = blocks.state
        if begun not in self._n_unmatched:
            blocks = blocks.copy()
            for line in self._place.lines_below[: self._n_below]:
                blocks.read(line)
            self._n_unmatched[begun] = blocks.n_unmatched
        return self._n_unmatched[begun]
