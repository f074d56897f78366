"""A text that may be inserted at a place, with what was read of it: read once, and on from there
where it grows or is changed."""

from __future__ import annotations

from functools import cached_property

from codespec.suggest import tags
from codespec.suggest.place import Place
from codespec.syntax.lexer import Lexed, Open, scan


class Candidate:
    """A text at a place. Never changed.

    head: the cursor's line up to the cursor, and the text.
    """

    def __init__(
        self, place: Place, text: str, line: Lexed | None = None, first: Lexed | None = None
    ) -> None:
        """line, first: of another candidate for this place."""
        self.place = place
        self.text = text
        self.head = place.line_prefix + text
        self._line = place.line if line is None else line
        self._first = first

    def became(self, text: str) -> Candidate:
        """The candidate with another text, most of which is often the same."""
        if text == self.text:
            return self
        return Candidate(
            self.place,
            text,
            self.__dict__.get("line", self._line),
            self.__dict__.get("first", self._first),
        )

    def at(self, place: Place) -> Candidate:
        """The candidate in what its document may become after the cursor."""
        if place is self.place:
            return self
        return Candidate(place, self.text, self.__dict__.get("line", self._line), self._first)

    @cached_property
    def line(self) -> Lexed:
        """`head`, read."""
        return self._line.became(self.head)

    @cached_property
    def whole(self) -> Lexed:
        """The cursor's line, with the text at the cursor, read."""
        return self.line.then(self.place.rest)

    @cached_property
    def first(self) -> Lexed:
        """The text's first line by itself, read as if it began in code."""
        line = self.text.split("\n", 1)[0]
        if self._first is None:
            return scan(line, self.place.language)
        return self._first.became(line)

    @cached_property
    def tags(self) -> tuple[Open, ...] | None:
        """Elements and brackets left open, outermost first; None where there are no tags."""
        return tags.open_in(self.head, self.place.language)
