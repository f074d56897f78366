"""A cursor in a document, and what the rules ask about lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from codespec.languages.registry import record_of
from codespec.syntax.lexer import Begun, Lexed, LexedLines, line_of_document
from codespec.syntax.lexis import lexis_of
from codespec.syntax.text import n_bytes
from codespec.syntax.trees import ParsedDocument

_WORD = re.compile(r"\w")
_LAST_TAG = re.compile(r"\s*</[\w.:-]*>?\s*\Z")
_DECORATES = re.compile(r"\s*(?:@|#\[|\[[A-Z][\w.]*[\](,]|<[A-Za-z](?!.*/>\s*\Z)[^<\n]*\Z)")


MAX_LINES = 200
"""Lines above the cursor's, and below it, that are looked at."""


@dataclass(frozen=True)
class Place:
    """A cursor in a document, with what was read of its lines: each is read once, by itself.

    prefix, suffix: the document's text around the cursor. parsed: of both together, None where
    there is no parser for it. path: of the document, "" where it has none.
    """

    prefix: str
    suffix: str
    language: str = ""
    parsed: ParsedDocument | None = None
    path: str = ""

    @cached_property
    def line_prefix(self) -> str:
        """The cursor's line before it."""
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    @cached_property
    def at(self) -> int:
        """Bytes before the cursor."""
        return n_bytes(self.prefix)

    @cached_property
    def line_start(self) -> int:
        """Bytes before the cursor's line."""
        return self.at - n_bytes(self.line_prefix)

    @cached_property
    def line_end(self) -> int:
        """Bytes up to the end of the cursor's line."""
        return self.at + n_bytes(self.rest)

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

    @cached_property
    def line(self) -> Lexed:
        """The cursor's line up to the cursor."""
        return line_of_document(self.line_prefix, self.language, self.begun)

    @cached_property
    def begun(self) -> Begun | None:
        """The string or comment that the cursor's line begins in, as far as the lines above tell by
        themselves: None where there is a tree."""
        facts = record_of(self.language)
        if self.parsed is not None or facts.prose or facts.is_markup or not self.above:
            return None
        above, lexis = "\n".join((*self.above, "")), lexis_of(facts)
        if not any(opener in above for opener in lexis.over_lines):
            return None
        found = lexis.left_open(above)
        return Begun(found[0], found[0].beginning(found[1])) if found is not None else None

    @cached_property
    def whole_line(self) -> Lexed:
        """The cursor's line."""
        return self.line.then(self.rest)

    @cached_property
    def end_of_line(self) -> Lexed:
        """The cursor's line after the cursor, by itself."""
        return line_of_document(self.rest, self.language)

    @cached_property
    def lines_above(self) -> LexedLines:
        """The lines of `above`."""
        return LexedLines(self.above, self.language)

    @cached_property
    def lines_below(self) -> LexedLines:
        """The lines of `below`."""
        return LexedLines(self.below, self.language)

    @cached_property
    def all_above(self) -> Lexed:
        """All lines above the cursor's, as one text."""
        return line_of_document(self.prefix.rpartition("\n")[0], self.language)

    @cached_property
    def all_below(self) -> Lexed:
        """All lines below the cursor's, as one text."""
        return line_of_document(self.suffix.partition("\n")[2], self.language)

    def with_below(self, text: str, parsed: ParsedDocument | None) -> Place:
        """The place with `text` after the cursor's line. parsed: of the document that becomes."""
        at = len(self.rest)
        suffix = self.suffix[:at] + text + self.suffix[at:]
        place = Place(self.prefix, suffix, self.language, parsed, self.path)
        # What stands before the cursor is the same, and has been read.
        kept = ("at", "line_prefix", "line_start", "line", "begun")
        kept += ("above", "lines_above", "all_above")
        place.__dict__.update({k: v for k, v in self.__dict__.items() if k in kept})
        return place


def indentation(line: str) -> int:
    """Width of the leading white space, tabs to multiples of four."""
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def column_of_key(line: str, item: str) -> int:
    """The column, tabs as in `indentation`, of what stands behind the signs of items that a line
    begins with. item: as in `Language`; "" for none."""
    begun = line.rstrip().expandtabs(4)
    at = indentation(begun)
    while item and begun.startswith(item, at):
        rest = begun[at + len(item) :]
        at += len(item) + len(rest) - len(rest.lstrip())
    return at


def lead_of(line: str) -> str:
    """The line's leading white space."""
    return line[: len(line) - len(line.lstrip())]


def has_words(text: str) -> bool:
    """True if a letter, a digit or an underscore stands in the text."""
    return _WORD.search(text) is not None


def tells(line: str) -> bool:
    """True if a line is particular enough that it will not stand twice."""
    return len(_WORD.findall(line)) >= 4 and not decorates(line) and not _LAST_TAG.match(line)


def decorates(line: str) -> bool:
    """True if a line begins a decorator, an annotation, an attribute or an element: such lines may
    stand many times."""
    return _DECORATES.match(line) is not None
