"""Brackets, quotes and comments of a few lines, without a parse: fast enough for every token.

Good for text that starts in code, as a line of code nearly always does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

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
    "lua": (_LUA_COMMENT, _LUA_BRACKETS, _DOUBLE, _SINGLE),
}
# How a token begins and ends, and what a text ends within that does not end it.
_LONG = (("/*", "*/", "comment"), ("--[[", "]]", "comment"), ("[[", "]]", "]]"))
CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
OPENER_OF = {v: k for k, v in CLOSER_OF.items()}


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
            else:
                extra.append(m.start())
            code.append(token)
        else:
            code.append('""' if token[0] in "\"'`[" else "")
            if at == len(text):
                inside = _unfinished(token)
    code.append(text[at:])
    return Scan(tuple(stack), tuple(extra), inside, "".join(code))


def _unfinished(token: str) -> str:
    """What the last token of a text leaves open."""
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
