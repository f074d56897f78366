"""Blocks that words open and close, as in Ruby, Lua, Elixir and shells, told by lines alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import copy
from functools import cache, lru_cache

from codespec.languages.base import Words
from codespec.languages.registry import record_of
from codespec.suggest.place import lead_of
from codespec.syntax.lexer import CLOSER_OF, Lexed

_NONE = Words(opens={}, ends=(), branches=())
_NAME = r"\1"
"""In what closes a block, its name."""
_MAX_LINE = 1_000
"""A longer line is data: patterns look from each word to its end."""


@cache
def _opening(known: Words, *, begins: bool) -> tuple[tuple[str, re.Pattern[str]], ...]:
    patterns = known.begins if begins else known.opens
    return tuple((closer, re.compile(pattern)) for closer, pattern in patterns.items())


def words_of(language: str) -> Words:
    """The words that open and close blocks, if there are any."""
    return record_of(language).words or _NONE


@cache
def _begins_with(*words: str) -> re.Pattern[str]:
    """A pattern of lines that begin with one of these; a key (`end: 1`) is none."""
    return re.compile(rf"[ \t]*(?:{any_of(words) or '(?!)'})(?!:(?!:))")


def any_of(words: Iterable[str]) -> str:
    """A pattern of these words; one that ends with a letter is none that is longer."""
    stripped = (word.strip() for word in words)
    return "|".join(re.escape(word) + r"\b" * word[-1].isalnum() for word in stripped)


def opened(code: str, language: str, *, begins: bool = False) -> str:
    """The text that closes the block which a line of code, as `scan` gives it, opens; "" where it
    opens none. begins: also where its head goes on in the next line."""
    line = code.rstrip().rpartition("\n")[2].strip()
    return _opened(line, words_of(language), begins) if 0 < len(line) <= _MAX_LINE else ""


@lru_cache(maxsize=1024)  # a document's lines are asked about again and again
def _opened(line: str, known: Words, begins: bool) -> str:
    found = _opening(known, begins=False)
    if begins:
        found += _opening(known, begins=True)
    for closer, opens in found:
        if _NAME in closer:
            named = ((m.end(), closer.replace(_NAME, m[1])) for m in opens.finditer(line))
            left = [text for end, text in named if text not in line[end:]]
            if left:
                return left[-1]
        elif opens.search(line):
            return closer
    return ""


def in_one_line(code: str) -> str:
    """The code of a head that may stand in several lines, as if they were one."""
    return " ".join(line.strip() for line in code.rstrip().split("\n"))


def is_named(closer: str, language: str) -> bool:
    """True if what closes a block says which: as many other words do not."""
    known = words_of(language).opens
    return closer not in known and any(_NAME in named for named in known)


def named_left(text: str, language: str, closer: str) -> tuple[int, int]:
    """(how many blocks of one name a text leaves open, how many it closes that are not open)."""
    found = [(at, -1) for at in _places_of(closer, text)]
    for template, opens in _opening(words_of(language), begins=False):
        if _NAME in template:
            names = ((m.start(), m[1]) for m in opens.finditer(text))
            found += [(at, 1) for at, name in names if template.replace(_NAME, name) == closer]
    n_open = n_closing = 0
    for _, step in sorted(found):
        n_closing += step < 0 and n_open == 0
        n_open = max(0, n_open + step)
    return n_open, n_closing


def _places_of(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def is_closer(opener: str, language: str) -> bool:
    """True if what closes a block, as `opened` or a bracket says it, is text of words."""
    return opener not in ("", ":", *CLOSER_OF) and words_of(language) is not _NONE


def branches(language: str) -> tuple[str, ...]:
    """Words, and a blank each, that begin lines which go on with a block."""
    return words_of(language).branches


def ends_of(language: str) -> tuple[str, ...]:
    """Words that begin lines which end a block, but for one that ends what no other does."""
    known = words_of(language)
    return tuple(word for word in known.ends if f"{word} " not in known.branches)


def ends(line: str, language: str) -> bool:
    """True if a line begins by ending a block."""
    return _begins_with(*words_of(language).ends).match(line) is not None


def closes(line: str, language: str, closer: str) -> bool:
    """True if a line goes on with the block above it, or ends it, and not another one than what
    `closer` ends."""
    others = (end for end in words_of(language).opens if end != closer and _NAME not in end)
    is_other = _begins_with(*(end.removesuffix("()") for end in others))
    return goes_on(line, language) and not is_other.match(line)


def may_end(word: str, language: str) -> bool:
    """True if a line that begins so far with this may come to end a block."""
    return any(whole.startswith(word) for whole in words_of(language).ends)


def goes_on(line: str, language: str) -> bool:
    """True if a line goes on with the block above it, or ends it."""
    known = words_of(language)
    return _begins_with(*known.ends, *known.branches).match(line) is not None


def may_go_on(word: str, language: str) -> bool:
    """True if a line that begins so far with this may come to do so."""
    known = words_of(language)
    return any(whole.strip().startswith(word) for whole in (*known.ends, *known.branches))


class Blocks:
    """Blocks that lines leave open or close, told line by line.

    closers: the lines that close the blocks left open, the outermost first. n_closing: how many
    lines close what is open above.
    """

    def __init__(self, language: str, *, brackets: bool = True) -> None:
        """brackets: whether brackets open and close such, too."""
        self.closers: list[str] = []
        self.n_closing = 0
        self._language = language
        self._brackets = brackets
        self._n_lists = 0
        self._begun = ""  # what closes the innermost one, as long as its head goes on
        known = words_of(language)
        self._ends, self._branches = _begins_with(*known.ends), _begins_with(*known.branches)

    @property
    def n_unmatched(self) -> int:
        """Number of blocks left open, and of lines that close what is open above."""
        return len(self.closers) + self.n_closing

    @property
    def state(self) -> tuple[int, int, int, str]:
        """All that `n_unmatched` depends on when more lines are read."""
        return len(self.closers), self.n_closing, self._n_lists, self._begun

    def copy(self) -> Blocks:
        found = copy(self)
        found.closers = self.closers.copy()
        return found

    def read(self, found: Lexed) -> None:
        """Go on with the next line."""
        line = found.text
        in_list = self._n_lists > 0
        if found.is_open or found.extra:
            self._n_lists += found.opened.count("[") - found.closed.count("]")
        if in_list:  # the words of a list are no blocks
            return
        if self._ends.match(line) or (self._brackets and found.extra):
            self.n_closing += not self.closers
            del self.closers[-1:]
        is_branch = self._branches.match(line)
        word = "" if is_branch else opened(found.code, self._language)
        if self._begun and (word == self._begun or is_branch):
            self._begun = ""
            return
        if not word and not is_branch:
            self._begun = word = opened(found.code, self._language, begins=True)
        if word or (self._brackets and found.is_open):
            self.closers.append(f"{lead_of(line)}{word}{found.closers}")


def left_open(
    code: Iterable[Lexed], language: str, *, brackets: bool = True
) -> tuple[list[str], int]:
    """Blocks that lines leave open or close.

    brackets: whether brackets open and close such, too.

    Returns: (the lines that close the blocks left open, the innermost first; how many lines close
    what is open above).
    """
    blocks = Blocks(language, brackets=brackets)
    for line in code:
        blocks.read(line)
    return blocks.closers[::-1], blocks.n_closing


def closing_lines(text: Lexed) -> list[str]:
    """The lines that close the blocks that words left open, the innermost first."""
    language = text.language
    if record_of(language).words is None:
        return []
    return left_open(text.code_lines, language, brackets=False)[0]
