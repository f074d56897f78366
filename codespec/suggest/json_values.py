"""No value but JSON's, and no comma but where one belongs.

What no JSON has ends a generated text: behind the last value before that. Commas that are missing
between lines are added, those before what closes are taken away. What the user wrote is not judged.
"""

from __future__ import annotations

from collections.abc import Callable

from codespec.languages.base import JsonDialect
from codespec.suggest.candidate import Candidate
from codespec.suggest.json_around import JsonAround
from codespec.suggest.json_reading import JsonReading
from codespec.suggest.place import Place, indentation


class JsonRules:
    """The rules for one place."""

    def __init__(self, place: Place, dialect: JsonDialect) -> None:
        self._around = JsonAround(place, dialect)
        self._read: JsonReading | None = None

    def upto_fault(self, candidate: Candidate) -> str:
        """The text up to the end of the last value before what no JSON has."""
        cut = self._reading(candidate.text).cut
        return candidate.text if cut is None else candidate.text[:cut].rstrip()

    def with_commas(self, candidate: Candidate) -> str:
        """The text with a comma between elements, and none elsewhere."""
        text = self.upto_fault(candidate)
        for start, end, new in reversed(self._reading(text).changes):
            before, after = text[:start], text[end:]
            if not new and not before.strip():
                text = before + after.lstrip(" \t")
            elif not new and not after.strip(" \t"):
                text = before.rstrip()
            else:
                text = before + new + after
        return text

    def _reading(self, text: str) -> JsonReading:
        if self._read is None or self._read.text != text:
            self._read = JsonReading(self._around, text)
        return self._read


def closes_values(place: Place) -> Callable[[Candidate], bool]:
    """A judge of variants of the suggestion for one place: none ends in a string, or with a bracket
    that nothing below closes."""
    column, below = indentation(place.line_prefix), place.line_below
    is_closed = indentation(below) > column or (
        indentation(below) == column and below.lstrip().startswith(("}", "]"))
    )

    def closes(variant: Candidate) -> bool:
        if place.rest.strip():
            return True
        ends_open = variant.line.code.rstrip().endswith(("{", "["))
        return variant.line.inside in ("", "comment") and (is_closed or not ends_open)

    return closes
