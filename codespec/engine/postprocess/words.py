"""Blocks that words open and close, as in Ruby, Lua, Elixir and shells, told by lines alone."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from codespec.engine.postprocess.place import lead_of
from codespec.engine.postprocess.scan import scan

_RUBY_BLOCK = (
    r"def|class|module|if|unless|while|until|for|case|begin|else|elsif|when|in|rescue|ensure"
)
# What opens a block at the end of a line of code, without comments, and the word that closes it.
_OPENS = {
    "ruby": {
        "end": rf"(?:^|[=(]|<<)[ \t]*(?:(?:private|protected|public)\s+)?(?:{_RUBY_BLOCK})\b"
        r"(?!.*(?:\bend\b|\bthen\b.*\S|\)\s*=\s|\bdef\s+[\w.?!]+\s*=\s))[^\n]*\Z"
        r"|\bdo(?:\s*\|[^|\n]*\|)?\Z"
    },
    "lua": {"end": r"\b(?:then|do|else|repeat)\Z|\bfunction\b[^()\n]*\([^()\n]*\)\Z"},
    "elixir": {"end": r"(?<!:)\b(?:do|else|rescue|catch|after)\Z|\bfn(?:\b(?!.*\bend\b).*->)?\Z"},
    "shell": {
        "fi": r"\bthen\Z|^else\Z",
        "done": r"(?:^|[\s;)])do\Z",
        "esac": r"(?:^|[\s;(])case\s(?!.*\besac\b).*\bin\Z",
    },
}
# As `_OPENS`, of lines whose head goes on in the next one, with `then` or `do`. Z shell's may have
# braces instead.
_BEGINS = {
    "shell": {
        "fi": r"^if\b(?!.*(?:\bfi\b|[{}]\Z))",
        "done": r"(?:^|\|[ \t]*)(?:while|until|for|select)\b(?!.*(?:\bdone\b|[{}]\Z))",
    }
}
LANGUAGES = tuple(_OPENS)
_MAX_LINE = 1_000
"""A longer line is data: patterns look from each word to its end."""


class _Words(NamedTuple):
    """ends: what lines begin with that end a block. branches: with that go on with one, or end it
    as no other word does."""

    ends: tuple[str, ...]
    branches: tuple[str, ...]


_WORDS = {
    "ruby": _Words(("end",), ("else ", "elsif ", "when ", "in ", "rescue ", "ensure ")),
    "lua": _Words(("end", "until"), ("else ", "elseif ", "until ")),
    "elixir": _Words(("end",), ("else ", "rescue ", "catch ", "after ")),
    "shell": _Words(("fi", "done", "esac"), ("elif ", "else ", "then ", "do ")),
}
_NONE = _Words((), ())


@cache
def _opening(language: str, *, begins: bool) -> tuple[tuple[str, re.Pattern[str]], ...]:
    patterns = (_BEGINS if begins else _OPENS).get(language, {})
    return tuple((closer, re.compile(pattern)) for closer, pattern in patterns.items())


@cache
def _begins_with(*words: str) -> re.Pattern[str]:
    """A key (`end: 1`) is none."""
    return re.compile(rf"[ \t]*(?:{'|'.join(map(str.strip, words)) or '(?!)'})\b(?!:(?!:))")


def opened(code: str, language: str, *, begins: bool = False) -> str:
    """The word that closes the block which a line of code, as `scan` gives it, opens; "" where it
    opens none. begins: also where its head goes on in the next line."""
    line = code.rstrip().rpartition("\n")[2].strip()
    if len(line) > _MAX_LINE:
        return ""
    found = _opening(language, begins=False)
    if begins:
        found += _opening(language, begins=True)
    return next((closer for closer, opens in found if opens.search(line)), "")


def branches(language: str) -> tuple[str, ...]:
    """What lines begin with, and a blank, that go on with a block."""
    return _WORDS.get(language, _NONE).branches


def ends_of(language: str) -> tuple[str, ...]:
    """What lines begin with that end a block, but for `until`, which ends what no other does."""
    return tuple(word for word in _WORDS.get(language, _NONE).ends if word != "until")


def ends(line: str, language: str) -> bool:
    """Whether a line begins by ending a block."""
    return _begins_with(*_WORDS.get(language, _NONE).ends).match(line) is not None


def may_end(word: str, language: str) -> bool:
    """Whether a line that begins so far with this may come to end a block."""
    return any(whole.startswith(word) for whole in _WORDS.get(language, _NONE).ends)


def goes_on(line: str, language: str) -> bool:
    """Whether a line goes on with the block above it, or ends it."""
    known = _WORDS.get(language, _NONE)
    return _begins_with(*known.ends, *known.branches).match(line) is not None


def may_go_on(word: str, language: str) -> bool:
    """Whether a line that begins so far with this may come to do so."""
    known = _WORDS.get(language, _NONE)
    return any(whole.strip().startswith(word) for whole in (*known.ends, *known.branches))


def left_open(text: str, language: str, *, brackets: bool = True) -> tuple[list[str], int]:
    """(the lines that close the blocks left open, the innermost first; how many lines close what is
    open above). brackets: whether brackets open and close such, too."""
    lines: list[str] = []
    n_closing = 0
    begun = ""  # what closes the innermost one, as long as its head goes on
    for line in text.split("\n"):
        found = scan(line, language)
        if ends(line, language) or (brackets and found.extra):
            n_closing += not lines
            del lines[-1:]
        is_branch = _begins_with(*branches(language)).match(line)
        word = "" if is_branch else opened(found.code, language)
        if begun and (word == begun or is_branch):
            begun = ""
            continue
        if not word and not is_branch:
            begun = word = opened(found.code, language, begins=True)
        if word or (brackets and found.open):
            lines.append(f"{lead_of(line)}{word}{found.closers}")
    return lines[::-1], n_closing


def closing_lines(text: str, language: str) -> list[str]:
    """The lines that close the blocks that words left open, the innermost first."""
    if language not in LANGUAGES:
        return []
    return left_open(scan(text, language).code, language, brackets=False)[0]
