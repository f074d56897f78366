"""Whether brackets, and words that open and close blocks, balance with a suggestion in its place:
the judge where there is no grammar.

The cursor's line is asked first. A text that closes more than its line opens may close what is open
above, which the whole document tells.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import takewhile

from codespec.engine.postprocess import markup, words
from codespec.engine.postprocess.place import MAX_LINES, Place, indentation
from codespec.engine.postprocess.scan import is_label, scan

_MAX_UNMATCHED = 200
"""Brackets above or below: with more, it is not the document that tells."""


def balances(place: Place) -> Callable[[str], bool]:
    """Asked with variants of the suggestion for one place."""
    is_closed = place.line_below.lstrip().startswith(")")

    def imbalance(text: str) -> int:
        line = place.line_prefix + text + place.rest
        found = scan(line, place.language)
        extra = [at for at in found.extra if is_closed or not is_label(line, at, place.language)]
        return len(found.open) + len(extra)

    @cache
    def around() -> tuple[str, str]:
        above = place.prefix[: len(place.prefix) - len(place.line_prefix)]
        return _unmatched(above, place), _unmatched(place.suffix[len(place.rest) :], place)

    @cache
    def imbalance_around(text: str) -> tuple[int, int]:
        """(brackets that close nothing, up to the end of what the cursor's line becomes; all of the
        document that match no other)."""
        above, below = around()
        upper = f"{above}{place.line_prefix}{text}{place.rest}\n"
        return len(scan(upper, place.language).extra), len(_unmatched(upper + below, place))

    def closes_above(text: str) -> bool:
        """Whether all that it closes is open above, and not closed below."""
        if sum(map(len, around())) > _MAX_UNMATCHED:
            return False
        before, after = imbalance_around(""), imbalance_around(text)
        return after[0] <= before[0] and after[1] <= before[1]

    before = imbalance("")
    floor = indentation(place.line_prefix)
    quote = place.rest[:1]
    in_string = quote in ("'", '"', "`") and place.line_prefix.count(quote) % 2 == 1

    def fits(variant: str) -> bool:
        if in_string and variant.count(quote) % 2 == 1:
            return False  # it closes the string
        # Text that opens a block on its last line is not at fault.
        last = (place.line_prefix + variant).rsplit("\n", 1)[-1]
        opens = indentation(last) >= floor and last.rstrip().endswith(("{", "(", "["))
        return imbalance(variant) <= before + opens or closes_above(variant)

    return fits


def blocks_balance(place: Place) -> Callable[[str], bool]:
    """Whether no more blocks of words, or elements, are left open, or closed that are not open,
    than without the suggestion: between the lines that are indented less, or in all of a short
    document. Asked as `balances`."""
    indent = indentation(f"{place.line_prefix}x")
    is_short = max(len(place.above), len(place.below)) < MAX_LINES

    def is_inside(line: str) -> bool:
        return not line.strip() or indentation(line) >= indent

    @cache
    def around(*, all_of_it: bool) -> tuple[str, str]:
        above, below = place.above, place.below
        if not all_of_it:
            above = list(takewhile(is_inside, reversed(above)))[::-1]
            below = list(takewhile(is_inside, below))
        return "".join(f"{s}\n" for s in above), "".join(f"\n{s}" for s in below)

    @cache
    def imbalance(text: str, *, all_of_it: bool) -> int:
        above, below = around(all_of_it=all_of_it)
        line = place.line_prefix + text + place.rest
        if place.language == "markup":
            return markup.n_unmatched(above + line + below)
        code = scan(line, place.language).code
        opened, n_closing = words.left_open(above + code + below, place.language, brackets=False)
        return len(opened) + n_closing

    def fits(variant: str) -> bool:
        return any(
            imbalance(variant, all_of_it=known) <= imbalance("", all_of_it=known)
            for known in (False, True)[: 1 + is_short]
        )

    return fits


def _unmatched(text: str, place: Place) -> str:
    """Its brackets that match no other, in their order."""
    found = scan(text, place.language)
    return "".join(text[at] for at in sorted((*found.extra, *(at for _, at in found.open))))
