"""Brackets, quotes and comments of a few lines, without a parse: fast enough for every token.

Good for text that starts in code, as a line of code nearly always does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, overload

from codespec.languages.registry import record_of
from codespec.syntax.lexis import HERE, Lexis, Token, lexis_of
from codespec.syntax.text import common_prefix

_BRACKET = re.compile(r"[()\[\]{}]")
_MAX_LABEL = 200
CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
IN_TAG = " />"
"""Text that may close an element whose first tag is not complete."""
OPENER_OF = {v: k for k, v in CLOSER_OF.items()}


class Open(NamedTuple):
    """An element or a bracket that is left open: what closes it, and where what opens it begins and
    ends."""

    closer: str
    start: int
    end: int

    @property
    def is_element(self) -> bool:
        """True for an element, or a template's block."""
        return self.closer not in OPENER_OF

    @property
    def is_whole(self) -> bool:
        """True for an element whose first tag is complete."""
        return self.is_element and self.closer != IN_TAG


_Stack: TypeAlias = "tuple[str, int, _Stack] | None"
"""Brackets left open, the innermost first: it, its place, and those around it."""


class _Point(NamedTuple):
    """A line's start in code, from which a text can be read on: what is open there, and how much of
    the rest of a `Lexed` belongs to the text before it."""

    at: int = 0
    stack: _Stack = None
    n_extra: int = 0
    n_bare: int = 0
    n_code: int = 0


class Begun(NamedTuple):
    """A string or a comment in which a text begins, and as much of it as tells how it goes on."""

    token: Token
    beginning: str


@dataclass(slots=True)
class LexCount:
    """Texts read in this process, for tests.

    n_texts: texts of their own. n_lines: lines of documents. n_extensions: texts that grew or were
    changed, read on from the start of the line that was, and parts of texts that were read.
    """

    n_texts: int = 0
    n_lines: int = 0
    n_extensions: int = 0


COUNT = LexCount()


@dataclass(slots=True, eq=False)  # frozen, it would cost as much as the reading of a line
class Lexed:
    """A text with its brackets, quotes and comments. Never changed.

    extra: the places of closing brackets that close nothing. inside: what the text ends within: a
    quote, "comment", or "". start: where that begins. code: the text with comments left out and
    strings emptied. begun: what the text begins in, None for code.
    stack, bare, points: for texts that are put together of this one, or grow out of it. bare: the
    places of closing brackets where nothing is open, and if they end a label.
    """

    text: str
    language: str
    extra: Sequence[int]
    inside: str
    code: str
    stack: _Stack
    bare: Sequence[tuple[int, bool]]
    points: Sequence[_Point]
    start: int = 0
    begun: Begun | None = None

    @property
    def open(self) -> tuple[tuple[str, int], ...]:
        """Brackets left open, outermost first, with their places."""
        found: list[tuple[str, int]] = []
        stack = self.stack
        while stack is not None:
            found.append(stack[:2])
            stack = stack[2]
        return tuple(reversed(found))

    @property
    def is_open(self) -> bool:
        """True if a bracket is left open."""
        return self.stack is not None

    @property
    def opened(self) -> str:
        """The brackets left open, outermost first."""
        return "".join(bracket for bracket, _ in self.open)

    @property
    def closed(self) -> str:
        """The closing brackets that close nothing."""
        return "".join(self.text[at] for at in self.extra)

    @property
    def unmatched(self) -> str:
        """The brackets that match no other, in the order of the text."""
        places = sorted((*self.extra, *(at for _, at in self.open)))
        return "".join(self.text[at] for at in places)

    @property
    def closers(self) -> str:
        """Text that closes everything that is open."""
        quote = self.inside if self.inside != "comment" else ""
        return quote + "".join(CLOSER_OF[bracket] for bracket in reversed(self.opened))

    @property
    def is_whole(self) -> bool:
        """True if nothing is left open, or closed that is not open."""
        return self.stack is None and not self.extra and not self.inside

    def then(self, more: str) -> Lexed:
        """This text and `more` behind it."""
        return self._read_on(self.text + more, len(self.points)) if more else self

    def became(self, text: str) -> Lexed:
        """The text that this one was changed to."""
        if text == self.text:
            return self
        n_same = common_prefix(self.text, text)
        if not n_same and self.text and self.begun is None:
            return scan(text, self.language)
        return self._read_on(text, bisect_right(self.points, n_same, key=_place))

    def upto(self, n: int) -> Lexed:
        """The first `n` characters."""
        if n >= len(self.text):
            return self
        return self._read_on(self.text[:n], bisect_right(self.points, n, key=_place))

    def inside_at(self, line_start: int) -> str:
        """`inside` of the text before a line."""
        n = bisect_right(self.points, line_start, key=_place)
        return "" if self.points[n - 1].at == line_start else self.upto(line_start).inside

    @property
    def last_line(self) -> Lexed:
        """The last line by itself, as if it began in code."""
        start = self.text.rfind("\n") + 1
        if not start:
            return self
        COUNT.n_extensions += 1
        return _read(self.text[start:], self.language, None, [_BEGIN])

    @property
    def within(self) -> Begun | None:
        """The string or comment that the text ends in, for a text behind it; None for code."""
        if not self.inside:
            return None
        if self.begun is not None and self.start == 0:
            token, text = self.begun.token, self.begun.beginning + self.text
            return Begun(token, token.beginning(text))
        lexis = lexis_of(record_of(self.language))
        m = lexis.pattern.match(self.text, self.start)
        token = lexis.of(m) if m is not None else None
        return Begun(token, token.beginning(self.text[self.start :])) if token else None

    @property
    def code_lines(self) -> list[Lexed]:
        """The lines of `code`, each by itself."""
        lines = self.code.split("\n")
        COUNT.n_extensions += len(lines)
        return [_read(line, self.language, None, [_BEGIN]) for line in lines]

    def _read_on(self, text: str, n_points: int) -> Lexed:
        COUNT.n_extensions += 1
        return _read(text, self.language, self, list(self.points[:n_points]))


def _place(point: _Point) -> int:
    return point.at


_BEGIN = _Point()


def scan(text: str, language: str) -> Lexed:
    """A text of its own, read from its beginning; about 10 MB a second."""
    COUNT.n_texts += 1
    return _read(text, language, None, [_BEGIN])


def _read(
    text: str,
    language: str,
    before: Lexed | None,
    points: list[_Point],
    begun: Begun | None = None,
) -> Lexed:
    """Reads on from the last of `points`, up to which `text` and `before` are the same. No token
    that ends before a point becomes another one by what follows.

    points: taken over. begun: what the text begins in, where that is not told by `before`.
    """
    at, stack, n_extra, n_bare, n_code = points[-1]
    extra: list[int] = list(before.extra[:n_extra]) if before is not None else []
    bare: list[tuple[int, bool]] = list(before.bare[:n_bare]) if before is not None else []
    code = [before.code[:n_code]] if before is not None else []
    inside, last = "", 0
    lexis = lexis_of(record_of(language))
    begun = before.begun if before is not None else begun
    if begun is not None and at == 0:
        at = begun.token.rest_in(begun.beginning, text)
        if at == len(text):
            inside = begun.token.unfinished(begun.beginning + text)
        code.append(begun.token.code)
        n_code += len(begun.token.code)
    more_lines = text.find("\n", at) >= 0
    for m in lexis.pattern.finditer(text, at):
        token, start = m.group(), m.start()
        if start > at:
            code.append(text[at:start])
            if more_lines:
                line = text.find("\n", at, start) + 1
                while line:
                    points.append(_Point(line, stack, len(extra), len(bare), n_code + line - at))
                    line = text.find("\n", line, start) + 1
            n_code += start - at
        at = m.end()
        known = lexis.of(m)
        if known is not None:
            if at == len(text):
                inside, last = known.unfinished(token), start
            if known.opener == HERE:
                stack = _read_head(lexis, text, start, stack, extra)
            token = known.in_code(token)
        elif token in CLOSER_OF:
            stack = (token, start, stack)
        else:
            if stack is not None and stack[0] == OPENER_OF[token]:
                stack = stack[2]
            else:
                is_case = lexis.case_label is not None and is_label(text, start, language)
                if stack is None:
                    bare.append((start, is_case))
                if not is_case:
                    extra.append(start)
        code.append(token)
        n_code += len(token)
    if at < len(text):
        code.append(text[at:])
        line = text.find("\n", at) + 1 if more_lines else 0
        while line:
            points.append(_Point(line, stack, len(extra), len(bare), n_code + line - at))
            line = text.find("\n", line) + 1
    code_text = "".join(code)
    return Lexed(text, language, extra, inside, code_text, stack, bare, points, last, begun)


def _read_head(lexis: Lexis, text: str, start: int, stack: _Stack, extra: list[int]) -> _Stack:
    """The brackets left open with those that follow, in its line, what begins text up to a line
    that repeats a word."""
    begins = lexis.here.match(text, start) if lexis.here is not None else None
    end = text.find("\n", start)
    if begins is None:
        return stack
    for m in _BRACKET.finditer(text, begins.end(), end if end >= 0 else len(text)):
        if m[0] in CLOSER_OF:
            stack = (m[0], m.start(), stack)
        elif stack is not None and stack[0] == OPENER_OF[m[0]]:
            stack = stack[2]
        else:
            extra.append(m.start())
    return stack


def joined(lines: Sequence[Lexed], language: str) -> Lexed:
    """Texts as lines of one, put together from what each of them is by itself; read once more from
    the first line that leaves something open over its end."""
    if len(lines) == 1:
        return lines[0]
    begun = lines[0].begun if lines else None
    text = "\n".join(line.text for line in lines)
    points = [_BEGIN]
    extra: list[int] = []
    bare: list[tuple[int, bool]] = []
    code: list[str] = []
    for n, line in enumerate(lines, 1):
        at, stack, _, _, n_code = points[-1]
        if n < len(lines) and not _ends_with_line(line):
            if n == 1:
                return line.then(text[len(line.text) :])
            COUNT.n_extensions += 1
            read = "\n".join((*code, ""))
            before = Lexed("", language, extra, "", read, None, bare, points, 0, begun)
            return _read(text, language, before, points)
        if line.extra or line.bare:
            closing: set[int] = set()
            for place, is_case in line.bare:
                if stack is not None and stack[0] == OPENER_OF[line.text[place]]:
                    stack = stack[2]
                    closing.add(place)
                elif stack is None:
                    bare.append((at + place, is_case))
            extra += [at + place for place in line.extra if place not in closing]
        if line.stack is not None:
            for bracket, place in line.open:
                stack = (bracket, at + place, stack)
        code.append(line.code)
        n_code += len(line.code) + 1
        points.append(_Point(at + len(line.text) + 1, stack, len(extra), len(bare), n_code))
    inside = lines[-1].inside if lines else ""
    start = len(text) - len(lines[-1].text) + lines[-1].start if lines else 0
    read, stack = "\n".join(code), points[-1].stack
    points = points[:-1] or points
    return Lexed(text, language, extra, inside, read, stack, bare, points, start, begun)


NOTHING = Lexed("", "", (), "", "", None, (), (_BEGIN,))
"""An empty line, for `joined`."""


def _ends_with_line(line: Lexed) -> bool:
    """True if no token of the line goes on in the next one."""
    if not line.inside and not line.text.endswith("\\"):
        return True
    return line.then("\n").points[-1].at == len(line.text) + 1


def line_of_document(text: str, language: str, begun: Begun | None = None) -> Lexed:
    """A line of a document, or a part of one, by itself. begun: what it begins in."""
    COUNT.n_lines += 1
    return _read(text, language, None, [_BEGIN], begun)


class LexedLines(Sequence[Lexed]):
    """Lines of a document, each read when it is asked for the first time."""

    def __init__(self, lines: Sequence[str], language: str) -> None:
        self._texts = lines
        self._language = language
        self._lexed: dict[int, Lexed] = {}

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> Lexed: ...
    @overload
    def __getitem__(self, index: slice) -> list[Lexed]: ...
    def __getitem__(self, index: int | slice) -> Lexed | list[Lexed]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        n = range(len(self))[index]
        found = self._lexed.get(n)
        if found is None:
            found = self._lexed[n] = line_of_document(self._texts[n], self._language)
        return found


def has_block_comments(language: str) -> bool:
    """True if comments stand between `/*` and `*/`."""
    return lexis_of(record_of(language)).pattern.match("/*") is not None


def is_label(text: str, at: int, language: str) -> bool:
    """True if a bracket ends the label of a case, as `start)` or `-h | help)` in shells, and opens
    nothing."""
    label = lexis_of(record_of(language)).case_label
    start = text.rfind("\n", 0, at) + 1
    is_short = text[at] == ")" and at - start <= _MAX_LABEL
    return label is not None and is_short and label.fullmatch(text, start, at) is not None
