"""Whether brackets balance with a suggestion in its place: the judge where there is no grammar.

The cursor's line is asked first. A text that closes more than its line opens may close what is open
above, which the whole document tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from codespec.engine.postprocess.place import Place, indentation
from codespec.engine.postprocess.scan import scan

_MAX_UNMATCHED = 200
"""Brackets above or below: with more, it is not the document that tells."""
_LABEL = re.compile(r"\s*[^\s()\[\]{}|]+(?:[ \t]*\|[ \t]*[^\s()\[\]{}|]+)*")


def balances(place: Place) -> Callable[[str], bool]:
    """Asked with variants of the suggestion for one place."""
    is_closed = place.line_below.lstrip().startswith(")")

    def imbalance(text: str) -> int:
        line = place.line_prefix + text + place.rest
        found = scan(line, place.language)
        extra = [at for at in found.extra if is_closed or not _is_label(line, at)]
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


def _is_label(text: str, at: int) -> bool:
    """Whether a bracket ends the first words of its line: `2)` in a list, `start)` or `-h | help)`
    in a shell's case, which open nothing."""
    return text[at] == ")" and _LABEL.fullmatch(text, text.rfind("\n", 0, at) + 1, at) is not None


def _unmatched(text: str, place: Place) -> str:
    """Its brackets that match no other, in their order."""
    found = scan(text, place.language)
    return "".join(text[at] for at in sorted((*found.extra, *(at for _, at in found.open))))
