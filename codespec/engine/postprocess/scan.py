"""Brackets, quotes and comments of a few lines, without a parse: fast enough for every token.

Good for text that starts in code, as a line of code nearly always does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

_HASH = r"\#[^\n]*"
_SLASHES = r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)"
_TRIPLE = r'"""(?s:\\.|.)*?(?:"""|\Z)|' + r"'''(?s:\\.|.)*?(?:'''|\Z)"
_DOUBLE = r'"(?:\\(?:(?s:.)|\Z)|[^"\\\n])*(?:"|(?=\n)|\Z)'
_DOUBLE_OVER_LINES = r'"(?:\\(?:(?s:.)|\Z)|[^"\\])*(?:"|\Z)'
_SINGLE = r"'(?:\\(?:(?s:.)|\Z)|[^'\\\n])*(?:'|(?=\n)|\Z)"
# A quote that may also begin a lifetime or stand in a number.
_CHARACTER = r"'(?:\\[^\n]{1,8}?|[^'\\\n])'"
_BACKTICK = r"`(?:\\(?:(?s:.)|\Z)|[^`\\])*(?:`|\Z)"
_BRACKET = r"[()\[\]{}]"
# What ends with the same quotes, whatever stands between.
_RAW_TRIPLE = r'"""(?s:.*?)(?:"""|\Z)'
_VERBATIM = r'(?:(?<=@)|(?<=@\$))"(?:[^"]|"")*(?:"|\Z)'
_SINGLE_OVER_LINES = r"'(?:\\(?:(?s:.)|\Z)|[^'\\])*(?:'|\Z)"
_LUA_COMMENT = r"--\[\[(?s:.*?)(?:\]\]|\Z)|--[^\n]*"
_LUA_BRACKETS = r"\[\[(?s:.*?)(?:\]\]|\Z)"

# Also begins in `${#x}`, `$#`, `a#b`; and what stands between lines with the same word.
_SHELL_COMMENT = r"(?:(?<=[\s;&|)`])(?<!\(\( )|(?<![\s\S]))\#[^\n]*"
_HERE_BEGINS = re.compile(r"(?<!<)<<-?[ \t]*['\"\\]?(?P<here>[A-Za-z_]\w*)['\"]?")
_HERE = (
    rf"{_HERE_BEGINS.pattern}(?=[ \t;&|>\n]|\Z)"
    r"(?s:.*?)(?:\n[ \t]*(?P=here)(?=\n|\Z)|\Z)"
)
_ESCAPED = r"\\(?s:.)"

_C = (_SLASHES, _DOUBLE, _CHARACTER)
JAVASCRIPT = (_SLASHES, _DOUBLE, _SINGLE, _BACKTICK)
_TOKENS = {
    "python": (_HASH, _TRIPLE, _DOUBLE, _SINGLE),
    "javascript": JAVASCRIPT,
    "typescript": JAVASCRIPT,
    "tsx": JAVASCRIPT,
    "go": (_SLASHES, _DOUBLE, _CHARACTER, _BACKTICK),
    "rust": (_SLASHES, _DOUBLE_OVER_LINES, _CHARACTER),
    "c": _C,
    "cpp": _C,
    "java": (_SLASHES, r'"""(?s:\\.|.)*?(?:"""|\Z)', _DOUBLE, _CHARACTER),
    "csharp": (_SLASHES, _RAW_TRIPLE, _VERBATIM, _DOUBLE, _CHARACTER),
    "php": (r"\#(?!\[)[^\n]*", _SLASHES, _DOUBLE_OVER_LINES, _SINGLE_OVER_LINES),
    "ruby": (r"\#(?!\{)[^\n]*", _DOUBLE, _SINGLE, _BACKTICK),
    "swift": (_SLASHES, _RAW_TRIPLE, _DOUBLE),
    "elixir": (_HASH, _TRIPLE, _DOUBLE_OVER_LINES, _SINGLE, r"(?<!\w)\?\\?[^\s\w]"),
    "shell": (_ESCAPED, _SHELL_COMMENT, _HERE, _DOUBLE_OVER_LINES, r"'[^']*(?:'|\Z)"),
    "markup": (r"<!--(?s:.*?)(?:-->|\Z)", _DOUBLE),
    "lua": (_LUA_COMMENT, _LUA_BRACKETS, _DOUBLE, _SINGLE),
}
_LABEL = re.compile(r"\s*[^\s()\[\]{}|]+(?:[ \t]*\|[ \t]*[^\s()\[\]{}|]+)*")
_CASE = r"(?:\"[^\"\n]*\"|[^\s()|\"])+"
_SHELL_LABEL = re.compile(rf"\s*{_CASE}(?:[ \t]*\|[ \t]*{_CASE})*[ \t]*")
_MAX_LABEL = 200
# How a token begins and ends, and what a text ends within that does not end it.
_LONG = (
    ("/*", "*/", "comment"),
    ("--[[", "]]", "comment"),
    ("[[", "]]", "]]"),
    ("<!--", "-->", "comment"),
)
CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
IN_TAG = " />"
"""What may close an element whose first tag is not complete."""
OPENER_OF = {v: k for k, v in CLOSER_OF.items()}


class Open(NamedTuple):
    """An element or a bracket that is left open: what closes it, and where what opens it begins and
    ends."""

    closer: str
    start: int
    end: int

    @property
    def is_element(self) -> bool:
        """Or a template's block."""
        return self.closer not in OPENER_OF

    @property
    def is_whole(self) -> bool:
        """An element whose first tag is complete."""
        return self.is_element and self.closer != IN_TAG


@dataclass(frozen=True, slots=True)
class Scan:
    """open: brackets left open, outermost first, with their places. extra: the places of closing
    brackets that close nothing. inside: what the text ends within: a quote, "comment", or "".
    code: the text with comments left out and strings emptied."""

    open: tuple[tuple[str, int], ...]
    extra: tuple[int, ...]
    inside: str
    code: str

    @property
    def closers(self) -> str:
        """What closes everything that is open."""
        quote = self.inside if self.inside != "comment" else ""
        return quote + "".join(CLOSER_OF[bracket] for bracket, _ in reversed(self.open))


# While a text grows the same beginnings are asked about for each of its tokens.
@lru_cache(maxsize=64)
def scan(text: str, language: str) -> Scan:
    """About 10 MB a second."""
    stack: list[tuple[str, int]] = []
    extra: list[int] = []
    code: list[str] = []
    inside = ""
    at = 0
    for m in _pattern(language).finditer(text):
        token = m.group()
        code.append(text[at : m.start()])
        at = m.end()
        if token in CLOSER_OF:
            stack.append((token, m.start()))
            code.append(token)
        elif token in OPENER_OF:
            if stack and stack[-1][0] == OPENER_OF[token]:
                stack.pop()
            elif language != "shell" or not is_label(text, m.start(), language):
                extra.append(m.start())
            code.append(token)
        else:
            code.append(_in_code(token))
            if at == len(text):
                inside = _unfinished(token)
    code.append(text[at:])
    return Scan(tuple(stack), tuple(extra), inside, "".join(code))


def is_label(text: str, at: int, language: str) -> bool:
    """Whether a bracket ends the first words of its line: `2)` in a list, `start)` or `-h | help)`
    in a shell's case, which open nothing."""
    start = text.rfind("\n", 0, at) + 1
    label = _SHELL_LABEL if language == "shell" else _LABEL
    is_short = text[at] == ")" and at - start <= _MAX_LABEL
    return is_short and label.fullmatch(text, start, at) is not None


def _in_code(token: str) -> str:
    """What stands in the code for a comment, a string or a character."""
    if token.startswith("<<"):
        return token.partition("\n")[0]
    return '""' if token[0] in "\"'`[" else ""


def _unfinished(token: str) -> str:
    """What the last token of a text leaves open."""
    if token.startswith("<<"):
        first, _, others = token.partition("\n")
        begun = _HERE_BEGINS.match(first)
        last = others.rpartition("\n")[2].strip()
        return "" if begun is not None and begun["here"] == last else "comment"
    if token[0] in "\\?":
        return ""
    for opener, closer, what in _LONG:
        if token.startswith(opener):
            is_closed = len(token) >= len(opener) + len(closer) and token.endswith(closer)
            return "" if is_closed else what
    if token.startswith(("//", "--", "#")):
        return "comment"
    quote = token[:3] if token[:3] in ('"""', "'''") else token[0]
    body = token[len(quote) :]
    n_backslashes = len(body[: -len(quote)]) - len(body[: -len(quote)].rstrip("\\"))
    closed = body.endswith(quote) and n_backslashes % 2 == 0
    return "" if closed else quote


@cache
def _pattern(language: str) -> re.Pattern[str]:
    tokens = _TOKENS.get(language, (_DOUBLE,))
    return re.compile("|".join((*tokens, _BRACKET)))
