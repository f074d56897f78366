"""Blocks that words open and close, as in Ruby and Lua, told by their lines alone."""

from __future__ import annotations

import re

from codespec.engine.postprocess.place import lead_of
from codespec.engine.postprocess.scan import scan

_RUBY_BLOCK = (
    r"def|class|module|if|unless|while|until|for|case|begin|else|elsif|when|in|rescue|ensure"
)
# At the end of a line of code, without comments.
_OPENS = {
    "ruby": re.compile(
        rf"(?:^|[=(]|<<)[ \t]*(?:(?:private|protected|public)\s+)?(?:{_RUBY_BLOCK})\b"
        r"(?!.*(?:\bend\b|\bthen\b.*\S|\)\s*=\s|\bdef\s+[\w.?!]+\s*=\s))[^\n]*\Z"
        r"|\bdo(?:\s*\|[^|\n]*\|)?\Z"
    ),
    "lua": re.compile(r"\b(?:then|do|else|repeat)\Z|\bfunction\b[^()\n]*\([^()\n]*\)\Z"),
}
LANGUAGES = tuple(_OPENS)
BRANCHES = ("else", "elsif ", "elseif ", "when ", "in ", "rescue", "ensure", "until ")
"""What lines begin with that go on with a block, or end it as no other word does."""
_WORDS = ("end", *map(str.strip, BRANCHES))
_END = re.compile(r"[ \t]*(?:end|until)\b")
_GOES_ON = re.compile(rf"[ \t]*(?:{'|'.join(_WORDS)})\b")


def opens(code: str, language: str) -> bool:
    """Whether a line of code, as `scan` gives it, opens a block."""
    pattern = _OPENS.get(language)
    line = code.rstrip().rpartition("\n")[2]
    return pattern is not None and pattern.search(line.strip()) is not None


def ends(line: str) -> bool:
    """Whether a line begins by ending a block."""
    return _END.match(line) is not None


def goes_on(line: str) -> bool:
    """Whether a line goes on with the block above it, or ends it."""
    return _GOES_ON.match(line) is not None


def may_go_on(word: str) -> bool:
    """Whether a line that begins so far with this may come to do so."""
    return any(whole.startswith(word) for whole in _WORDS)


def left_open(text: str, language: str, *, brackets: bool = True) -> tuple[list[str], int]:
    """(the lines that close the blocks left open, the innermost first; how many lines close what is
    open above). brackets: whether brackets open and close such, too."""
    lines: list[str] = []
    n_closing = 0
    for line in text.split("\n"):
        found = scan(line, language)
        if ends(line) or (brackets and found.extra):
            n_closing += not lines
            del lines[-1:]
        is_word = opens(found.code, language) and not goes_on(line)
        if is_word or (brackets and found.open):
            lines.append(f"{lead_of(line)}{'end' if is_word else ''}{found.closers}")
    return lines[::-1], n_closing


def closing_lines(text: str, language: str) -> list[str]:
    """The lines that close the blocks that words left open, the innermost first."""
    return left_open(text, language, brackets=False)[0] if language in LANGUAGES else []
