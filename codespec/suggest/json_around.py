"""JSON around a cursor: what it is in, and what is expected there, as far as nearby tokens tell.

Documents may have errors elsewhere, so tokens are read from the cursor outwards, and only as far as
something is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, islice
from typing import Literal, NamedTuple, TypeAlias

from codespec.languages.base import JsonDialect
from codespec.suggest.place import MAX_LINES, Place
from codespec.syntax.json_tokens import JsonToken, TokenKind, json_tokens

Container: TypeAlias = Literal["{", "[", "top", "unknown"]
Expected: TypeAlias = Literal[
    "key", "key or end", "colon", "value", "value or end", "any", "end", "colon or end"
]
"""Next token in a container: "end" is a comma or what closes, "any" a key or a value, both of them
"or end" where nothing stands in the container yet."""

_N_TOLD = 8
"""Lines above the cursor's of which all tokens are read; of those above them, brackets are."""
_MAX_CHARACTERS = 50_000
"""Characters above the cursor, and below it, that are looked at."""
_COMMENT = re.compile(r"\s*(?://|/\*)")
_COMMA_BEFORE_CLOSER = re.compile(r",[ \t]*(?://[^\n]*)?\n\s*[}\]]")


class _Before(NamedTuple):
    kind: TokenKind
    n_above: int  # lines above the cursor's


class JsonAround:
    """The tokens around the cursor of a place.

    start: place in the cursor's line where the token begins that may go on at the cursor, else the
    cursor's.
    """

    def __init__(self, place: Place, dialect: JsonDialect) -> None:
        self.place = place
        self.dialect = dialect
        self._here = list(json_tokens(place.line_prefix, is_json5=dialect.is_json5))
        self.start = len(place.line_prefix)
        self._is_near = len(place.above) < MAX_LINES  # to the beginning of the document
        if self._here and self._here[-1].end == self.start and _may_go_on(self._here[-1]):
            self.start = self._here.pop().start
        self._n_read = 0
        before = self._tokens_before()
        first = list(islice(before, 2))
        self._last = first[0] if first else None
        self._second = first[1] if first[1:] else None
        self._found: list[Container] = []
        self._outwards = self._containers(chain(first, before))

    def container(self, n: int) -> Container:
        """One around the cursor, 0 for the innermost; "unknown" if it begins too far away."""
        while len(self._found) <= n:
            self._found.append(next(self._outwards))
        return self._found[n]

    @property
    def begins_line(self) -> bool:
        """True if no token stands before the cursor in its line, and some do above."""
        return self._last is not None and self._last.n_above > 0

    @property
    def follows_comma(self) -> bool:
        """True if the last token before the cursor is a comma."""
        return self._last is not None and self._last.kind == ","

    def expected(self, inside: Container) -> Expected:
        """The token that is expected at `start`. inside: the innermost container."""
        last, second = self._last, self._second
        if last is None:
            return "value" if inside == "top" else "any"
        by_sign: dict[str, Expected] = {
            "{": "key or end",
            "[": "value or end",
            ":": "value",
            ",": begins_element(inside),
        }
        if last.kind in by_sign:
            return by_sign[last.kind]
        if last.kind not in ("string", "name") or inside in ("[", "top"):
            return "end"
        if second is None or second.kind == ":":
            return "end" if second is not None else "colon or end"
        if inside == "unknown":
            return "colon or end"
        is_key = second.kind in ("{", ",") or second.n_above > last.n_above
        return "colon" if is_key else "end"

    def below(self) -> Iterator[JsonToken]:
        """Tokens of the lines below the cursor's, without comments."""
        n_left, in_comment = _MAX_CHARACTERS, False
        for line in self.place.below:
            n_left -= len(line)
            if n_left < 0:
                return
            start = 0
            if in_comment:
                start = line.find("*/") + 2
                if start < 2:
                    continue
            in_comment = False
            for token in json_tokens(line, start, is_json5=self.dialect.is_json5):
                if token.kind != "comment":
                    yield token
                elif token.is_open and line.startswith("/*", token.start):
                    in_comment = True

    @cached_property
    def has_comments(self) -> bool:
        """True if comments are tolerated: by the dialect, or as lines of the document are some."""
        lines = (*self.place.above, self.place.line_prefix, *self.place.below)
        return self.dialect.comments or any(map(_COMMENT.match, lines))

    @cached_property
    def has_trailing_commas(self) -> bool:
        """True if a comma before what closes is tolerated: by the dialect, or as the document has
        one elsewhere."""
        if self.dialect.trailing_commas != "as elsewhere":
            return self.dialect.trailing_commas == "right"
        nearby = ("\n".join(self.place.above), "\n".join(self.place.below))
        return any(_COMMA_BEFORE_CLOSER.search(text) for text in nearby)

    def _tokens_before(self) -> Iterator[_Before]:
        """Tokens before `start`, without comments, the nearest first: of the next lines above, and
        of more where those have none."""
        for token in reversed(self._here):
            if token.kind != "comment":
                yield _Before(token.kind, 0)
        in_comment = is_found = False
        for n, line in enumerate(reversed(self.place.above), 1):
            if is_found and n > _N_TOLD:
                return
            self._n_read = n
            in_comment = in_comment and "/*" not in line
            if in_comment or not line.strip():
                continue
            tokens = list(json_tokens(line, is_json5=self.dialect.is_json5))
            end = line.find("*/") if "/*" not in line else -1
            if end >= 0 and any(t.kind == "bad" and t.start == end for t in tokens):
                in_comment = True
                tokens = [token for token in tokens if token.start > end + 1]
            for token in reversed(tokens):
                if token.kind != "comment":
                    is_found = True
                    yield _Before(token.kind, n)

    def _brackets_before(self) -> Iterator[str]:
        """Brackets of the lines above those whose tokens were read, the nearest first; of each
        line, those that match no other in it."""
        n_left = _MAX_CHARACTERS
        for n in range(len(self.place.above) - self._n_read - 1, -1, -1):
            n_left -= len(self.place.above[n])
            if n_left < 0:
                self._is_near = False
                return
            yield from reversed(self.place.lines_above[n].unmatched)

    def _containers(self, before: Iterator[_Before]) -> Iterator[Container]:
        depth, is_told = 0, False
        for kind in chain((token.kind for token in before), self._brackets_before()):
            if kind == "}" or kind == "]":
                depth += 1
            elif kind == "{" or kind == "[":
                if depth:
                    depth -= 1
                elif is_told:
                    is_told = False
                else:
                    yield kind
            elif kind == ":" and not depth and not is_told:
                is_told = True  # only an object has colons: its beginning need not be found
                yield "{"
        if self._is_near:
            yield "top"
        while True:
            yield "unknown"


def begins_element(inside: Container) -> Expected:
    """The token that is expected behind a comma."""
    return "key" if inside == "{" else "value" if inside == "[" else "any"


def _may_go_on(token: JsonToken) -> bool:
    """True if a token that the cursor touches may become another one."""
    return token.is_open or token.kind in ("scalar", "name", "bad")
