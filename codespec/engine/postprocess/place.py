"""A cursor in a document, and what the rules ask about lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from codespec.index.trees import ParsedDocument

_WORD = re.compile(r"\w")
_LAST_TAG = re.compile(r"\s*</[\w.:-]*>?\s*\Z")
_DECORATES = re.compile(r"\s*(?:@|#\[|\[[A-Z][\w.]*[\](,]|<[A-Za-z](?!.*/>\s*\Z)[^<\n]*\Z)")


MAX_LINES = 200
"""Of the lines above and below the cursor's, so many are looked at."""


@dataclass(frozen=True)
class Place:
    """prefix, suffix: the document's text around the cursor. parsed: of both together, None where
    there is no parser for it."""

    prefix: str
    suffix: str
    language: str = ""
    parsed: ParsedDocument | None = None

    @cached_property
    def line_prefix(self) -> str:
        """The cursor's line before it."""
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    @cached_property
    def rest(self) -> str:
        """The cursor's line after it."""
        return self.suffix.split("\n", 1)[0]

    @cached_property
    def above(self) -> list[str]:
        """The lines above the cursor's, the nearest last."""
        return self.prefix.rsplit("\n", MAX_LINES + 1)[-1 - MAX_LINES : -1]

    @cached_property
    def below(self) -> list[str]:
        """The lines below the cursor's, the nearest first."""
        return self.suffix.split("\n", MAX_LINES + 1)[1 : 1 + MAX_LINES]

    @cached_property
    def line_below(self) -> str:
        """The first line after the cursor's that is not blank."""
        return next((line for line in self.below if line.strip()), "")


def indentation(line: str) -> int:
    """Width of the leading white space, tabs to multiples of four."""
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def lead_of(line: str) -> str:
    """Its leading white space."""
    return line[: len(line) - len(line.lstrip())]


def has_words(text: str) -> bool:
    return _WORD.search(text) is not None


def tells(line: str) -> bool:
    """Whether a line is particular enough that it will not stand twice."""
    return len(_WORD.findall(line)) >= 4 and not decorates(line) and not _LAST_TAG.match(line)


def decorates(line: str) -> bool:
    """Whether a line begins a decorator, an annotation, an attribute or an element: such lines may
    stand many times."""
    return _DECORATES.match(line) is not None
