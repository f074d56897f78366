"""Tokens of JSON and its kin, sign by sign, of text that may be incomplete or wrong.

RFC 8259; comments as JSON with Comments has them; names, strings and numbers as of JSON5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias, cast

TokenKind: TypeAlias = Literal[
    "{", "}", "[", "]", ":", ",", "string", "scalar", "name", "comment", "bad"
]

_HEX = "[0-9a-fA-F]"
_BODY = rf'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u{_HEX}{{4}})[^"\\\x00-\x1f]*)*'
_ESCAPE_BEGUN = re.compile(rf"\\(?:u{_HEX}{{0,3}})?\Z")
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_LITERALS = ("true", "false", "null")
_JSON5_BODIES = {q: rf"[^{q}\\\n]*(?:\\(?s:.)[^{q}\\\n]*)*" for q in "\"'"}
_JSON5_NUMBER = (
    rf"[-+]?(?:0[xX]{_HEX}+|Infinity|NaN"
    r"|(?:(?:0|[1-9][0-9]*)\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
)
_NAME = r"(?:[^\W\d]|\$)[\w$]*"


class JsonToken(NamedTuple):
    """A token of a text.

    good: the end of what may stay of it: of a bad one, its start, or the end of a whole number or
    of the part of a string before what no string holds.
    is_open: a string or comment that the end of the text ends.
    """

    kind: TokenKind
    start: int
    end: int
    good: int
    is_open: bool = False


def _pattern(strings: str, number: str, name: str) -> re.Pattern[str]:
    """A pattern of one token and the blanks before it."""
    scalar = rf"{'|'.join(_LITERALS)}|{number}"
    return re.compile(
        rf"\s*(?:(?P<sign>[{{}}\[\]:,])|(?P<string>{strings})"
        rf"|(?:(?P<scalar>{scalar})|(?P<name>{name}))(?![-+.\w$])"
        r"|(?P<comment>//[^\n]*|/\*(?s:.*?)(?:\*/|\Z))"
        r"|(?P<quote>[\"'])|(?P<word>[-+.\w$]+)|(?P<other>\S))"
    )


_JSON5_STRINGS = "|".join(q + body + q for q, body in _JSON5_BODIES.items())
_TOKENS = {
    False: _pattern(f'"{_BODY}"', _NUMBER, r"(?!)"),
    True: _pattern(_JSON5_STRINGS, _JSON5_NUMBER, _NAME),
}
_BODIES = {
    False: {'"': re.compile(f'"{_BODY}')},
    True: {q: re.compile(q + body) for q, body in _JSON5_BODIES.items()},
}
_NUMBERS = {False: re.compile(_NUMBER), True: re.compile(_JSON5_NUMBER)}
_NUMBER_GOES_ON = re.compile(r"\.|[eE][-+]?")


def json_tokens(text: str, start: int = 0, *, is_json5: bool = False) -> Iterator[JsonToken]:
    """All tokens from `start` on, in code."""
    match, at = _TOKENS[is_json5].match, start
    while m := match(text, at):
        group = cast("str", m.lastgroup)
        start, at = m.span(group)
        if group == "sign":
            yield JsonToken(cast("TokenKind", text[start]), start, at, at)
        elif group == "quote":
            token = _broken_string(text, start, is_json5=is_json5)
            at = token.end
            yield token
        elif group == "word":
            yield _broken_word(text[start:at], start, is_json5=is_json5)
        elif group == "comment":
            is_closed = text.startswith("/*", start) and text.endswith("*/", start + 2, at)
            yield JsonToken("comment", start, at, at, at == len(text) and not is_closed)
        elif group == "other":
            yield JsonToken("bad", start, at, start)
        else:
            yield JsonToken(cast("TokenKind", group), start, at, at)


def _broken_string(text: str, start: int, *, is_json5: bool) -> JsonToken:
    """A string that its text does not close, or that none of this kind is."""
    quote = text[start]
    body = _BODIES[is_json5].get(quote)
    begun = body.match(text, start) if body is not None else None
    if begun is None:
        end = text.find(quote, start + 1, _line_end(text, start)) + 1
        return JsonToken("bad", start, end or start + 1, start)
    end = begun.end()
    if end == len(text) or _ESCAPE_BEGUN.match(text, end):
        return JsonToken("string", start, len(text), len(text), is_open=True)
    closed = text.find(quote, end, _line_end(text, end)) + 1
    return JsonToken("bad", start, closed or _line_end(text, end), end)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _broken_word(word: str, start: int, *, is_json5: bool) -> JsonToken:
    """A word that is no value. A number in it is good where it is merely not finished, not where
    the word looks like one, as a date does."""
    number = _NUMBERS[is_json5].match(word)
    n = number.end() if number else 0
    is_begun = n > 0 and _NUMBER_GOES_ON.fullmatch(word, n) is not None
    return JsonToken("bad", start, start + len(word), start + n if is_begun else start)


def is_begun_scalar(word: str, *, is_json5: bool) -> bool:
    """True if a word may become a number or a literal."""
    if any(literal.startswith(word) for literal in _LITERALS) or word == "-":
        return True
    token = next(json_tokens(word, is_json5=is_json5))
    return token.kind in ("scalar", "name") or token.good > 0
