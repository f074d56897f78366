"""Tokens of a language as its record says them: comments, strings, characters and brackets."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Literal, TypeAlias

from codespec.languages.base import NEVER, BlockComment, Language, LineComment, Quotes

Kind: TypeAlias = Literal["code", "string", "comment"]
"""Kind of a character of a text."""

HERE = "<<"
"""Opener of text up to a line that repeats a word."""
_END = r"|\Z"
_BRACKETS = "()[]{}"
_ASSERTIONS = r"(?:\(\?<[!=](?:[^()\[\]\\]|\\.|\[(?:[^\]\\]|\\.)*\])*\))*"
# Behind assertions of what stands before, a sign that stands for itself, once at least; or a group.
_BEGINS = re.compile(
    _ASSERTIONS + r"(?:\\(?P<escaped>[^\w\s])|(?P<plain>[^\\.^$*+?{}\[\]|()]))(?![*?{])"
)
_BEGINS_GROUP = re.compile(_ASSERTIONS + r"\(\?:(?P<inside>[^()\[\]]*)\)(?![*?{])")
_IN_PATTERN = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|[()|]", re.DOTALL)
_HERE_ENDS = r"\n[ \t]*(?P=here)(?=[;,.)\]]|[ \t]*(?:\n|\Z))"
# Faces, whose brackets open and close nothing.
FACE = r"(?<!\S)(?:[:;][-'^]?|=)[()\[\]{}]+(?!\w)|(?<!\S)[(\[][-'^]?(?:[:;](?![\w:;])|=(?!\S))"
_MAX_NESTED = 4
"""Comments in comments, or brackets in a string, that count."""
_MAX_CODE = 200
"""Parts of code in a string; its signs belong to the string if there are more."""


@dataclass(frozen=True, slots=True)
class Token:
    """One kind of a language's comments, strings and characters.

    opener: signs that begin it; "" where that may be any. after: assertion before it. pattern: of
    one, closed or not. closed: of one that is closed; "" where nothing has to close it. inside: the
    closer, or "comment" where no sign closes it in code; "" if none is left open. code: what stands
    for it among code. nested: what opens and closes more of the same in it, if that counts.
    """

    kind: Kind
    opener: str
    after: str
    pattern: str
    closed: str = ""
    inside: str = ""
    code: str = '""'
    nested: tuple[str, str] = ("", "")

    def unfinished(self, token: str) -> str:
        """`inside` where a text ends with this token and nothing closes it, else ""."""
        is_closed = self.closed and _compiled(self.closed).fullmatch(token) is not None
        return "" if is_closed else self.inside

    def in_code(self, token: str) -> str:
        """The part of the code that stands for it."""
        return token.partition("\n")[0] if self.opener == HERE else self.code

    def beginning(self, token: str) -> str:
        """The part of an unfinished one that tells how it goes on."""
        if self.opener == HERE:
            return token.partition("\n")[0] + "\n"
        opens, closes = self.nested
        n = token.count(opens) - token.count(closes) - 1 if opens else 0
        return self.opener + opens * n

    def rest_in(self, beginning: str, text: str) -> int:
        """Length of the part of the text that goes on with an unfinished one."""
        m = _compiled(self.pattern).match(beginning + text)
        return max(0, m.end() - len(beginning)) if m is not None else 0


@dataclass(frozen=True, slots=True)
class Lexis:
    """Tokens of a language that are not read sign by sign.

    pattern: of all of them, and of brackets. outside_code: of them alone. tokens: by the names of
    their groups in both. here: the pattern of what begins text up to a line that repeats a word, if
    there is such. case_label: as in the record, None for none. over_lines: openers of what may go
    on in the next line.
    """

    pattern: re.Pattern[str]
    outside_code: re.Pattern[str]
    tokens: dict[str, Token]
    here: re.Pattern[str] | None
    case_label: re.Pattern[str] | None
    over_lines: tuple[str, ...]

    def of(self, m: re.Match[str]) -> Token | None:
        """The kind of token that `pattern` has found, None for a bracket."""
        return self.tokens[m.lastgroup] if m.lastgroup is not None else None

    def left_open(self, text: str) -> tuple[Token, str] | None:
        """The token that a text which begins in code ends within, and its text so far; None for
        code."""
        last = next(iter(deque(self.outside_code.finditer(text), maxlen=1)), None)
        token = self.of(last) if last is not None and last.end() == len(text) else None
        if last is None or token is None or not token.unfinished(last.group()):
            return None
        return token, last.group()


@cache
def lexis_of(record: Language) -> Lexis:
    """The tokens of a language, compiled once."""
    tokens = {f"t{n}": token for n, token in enumerate(_tokens(record))}
    return Lexis(
        re.compile(_any_of(tokens, _BRACKETS)),
        re.compile(_any_of(tokens, "") if tokens else NEVER),
        tokens,
        re.compile(record.heredocs) if record.heredocs else None,
        re.compile(record.case_label) if record.case_label else None,
        _over_lines(record),
    )


def _any_of(tokens: dict[str, Token], brackets: str) -> str:
    """The pattern of any of these tokens, in their order, or else of a bracket, by the sign that
    they begin with. A sign is looked at once, not for each of the fifty strings of some
    languages."""
    parts: list[str] = []
    by_sign: dict[str, dict[str, Token]] = {}
    signs = set(brackets)
    knows_all = True
    for name, token in tokens.items():
        first = _first_signs(token.pattern)
        signs |= first
        knows_all = knows_all and bool(first)
        if len(first) == 1:
            by_sign.setdefault(first.pop(), {})[name] = token
        else:
            parts += _each(by_sign)
            parts.append(_alternatives({name: token}))
            by_sign = {}
    parts += _each(by_sign)
    found = "|".join((*parts, f"[{re.escape(brackets)}]") if brackets else parts)
    return f"(?=[{re.escape(''.join(sorted(signs)))}])(?:{found})" if knows_all else found


def _each(by_sign: dict[str, dict[str, Token]]) -> Iterator[str]:
    for sign, tokens in by_sign.items():
        found = _alternatives(tokens)
        yield found if len(tokens) == 1 else f"(?={re.escape(sign)})(?:{found})"


def _alternatives(tokens: dict[str, Token]) -> str:
    """The pattern of any of these tokens; the assertion that some in a row share is tried once."""
    found: list[str] = []
    for after, same in groupby(tokens.items(), lambda item: item[1].after):
        parts = "|".join(f"(?P<{name}>{token.pattern})" for name, token in same)
        found.append(f"{after}(?:{parts})")
    return "|".join(found)


def _first_signs(pattern: str) -> set[str]:
    """The signs that all that a pattern matches begins with; none where it is not that simple."""
    found: set[str] = set()
    for part in _split(pattern):
        begins = _BEGINS.match(part)
        group = _BEGINS_GROUP.match(part) if begins is None else None
        if begins is not None:
            signs = {begins["escaped"] or begins["plain"]}
        else:
            signs = _first_signs(group["inside"]) if group is not None else set[str]()
        if not signs:
            return set()
        found |= signs
    return found


def _split(pattern: str) -> Iterator[str]:
    """The alternatives of a pattern."""
    depth = start = 0
    for m in _IN_PATTERN.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(m[0], 0)
        if m[0] == "|" and not depth:
            yield pattern[start : m.start()]
            start = m.end()
    yield pattern[start:]


def _over_lines(record: Language) -> tuple[str, ...]:
    strings = (quotes.opener for quotes in record.strings if quotes.over_lines)
    blocks = (comment.opener for comment in record.block_comments)
    return (*strings, *blocks, *([HERE] if record.heredocs else ()))


def token_patterns(record: Language) -> Iterator[str]:
    """Patterns of comments, strings and characters, in the order in which they are tried."""
    for token in _tokens(record):
        yield f"{token.after}(?:{token.pattern})"


def _tokens(record: Language) -> Iterator[Token]:
    if record.prose:
        yield Token("code", "", "", FACE, code="")
    if record.text:
        yield Token("code", "", "", record.text)
    if record.characters:
        yield Token("string", "", "", record.characters)
    yield from map(_block_comment, record.block_comments)
    yield from map(_line_comment, record.line_comments)
    if record.heredocs:
        whole = rf"{record.heredocs}(?s:.*?)"
        ends = rf"(?:{_HERE_ENDS}{_END})"
        yield Token("string", HERE, "", whole + ends, whole + _HERE_ENDS, "comment")
    yield from map(_quoted, record.strings)


def _line_comment(comment: LineComment) -> Token:
    unless = f"(?!{comment.unless})" if comment.unless else ""
    lead = r"(?m:^)[ \t]*" if comment.begins_line else ""
    pattern = rf"{lead}{re.escape(comment.opener)}{unless}[^\n]*"
    return Token("comment", comment.opener, comment.after, pattern, "", "comment", code="")


def _block_comment(comment: BlockComment) -> Token:
    opener, closer = comment.opener, comment.closer

    def pattern(end: str) -> str:
        if comment.nests:
            return re.escape(opener) + _nested(opener, closer, end)
        return rf"{re.escape(opener)}(?s:.*?)(?:{re.escape(closer)}{end})"

    nested = (opener, closer) if comment.nests else ("", "")
    return Token(
        "comment", opener, comment.after, pattern(_END), pattern(""), "comment", "", nested
    )


def _nested(opener: str, closer: str, end: str, escape: str = "") -> str:
    """The pattern of what stands behind an opener, up to its closer."""
    begins, ends = re.escape(opener), re.escape(closer)
    first, last = re.escape(opener[0]), re.escape(closer[0])
    sign = r"\\" if escape else ""
    found = rf"(?:{escape}[^{last}{sign}]|(?!{ends}){last})*"
    for _ in range(_MAX_NESTED):
        other = rf"(?!{ends}|{begins})[{first}{last}]"
        inner = rf"{begins}{found}(?:{ends}{end})"
        found = rf"(?:{escape}[^{first}{last}{sign}]|{inner}|{other})*"
    return rf"{found}(?:{ends}{end})"


def _quoted(quotes: Quotes) -> Token:
    opener, closer = quotes.opener, quotes.closer or quotes.opener
    begins, ends = re.escape(opener), re.escape(closer)
    if quotes.is_character:
        whole = rf"{begins}(?:\\[^\n]{{1,8}}?|[^{ends}\\\n]){ends}"
        return Token("string", opener, quotes.after, whole, whole, closer)
    nested = (opener[-1], closer) if quotes.nests else ("", "")
    end = _END if quotes.over_lines else rf"|(?=\n){_END}"
    body = _body(quotes, closer)

    def pattern(end: str) -> str:
        if quotes.nests:
            escape = "" if quotes.escape == "none" else r"\\(?s:.)|"
            return begins + _nested(*nested, end, escape)
        unless = f"(?!{quotes.unless})" if quotes.unless else ""
        return rf"{begins}{body}(?:{ends}{unless}{end})"

    return Token("string", opener, quotes.after, pattern(end), pattern(""), closer, nested=nested)


def _body(quotes: Quotes, closer: str) -> str:
    """The pattern of what stands in a string."""
    ends, last = re.escape(closer), re.escape(closer[0])
    sign = {"backslash": r"\\", "backtick": "`"}.get(quotes.escape, "")
    first = _code(*quotes.code)
    if sign:
        first += rf"{sign}(?:(?s:.)|\Z)|"
    if quotes.escape in ("doubled", "backtick"):
        first += f"{ends}{ends}|"
    if quotes.unless:
        first += rf"{ends}(?:{quotes.unless})|"
    if len(closer) > 1 and not first:
        return r"(?s:.*?)"
    others = rf"|(?!{ends}){last}" if len(closer) > 1 else ""
    line_end = "" if quotes.over_lines else r"\n"
    return rf"(?:{first}[^{last}{sign}{line_end}]{others})*"


def _code(opener: str, closer: str) -> str:
    """The pattern of code in a string, and what parts it from others; "" for none."""
    if not opener:
        return ""
    string = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    signs = re.escape(opener[-1] + closer)
    part = rf"[^{signs}\"'\n]|{string}"
    inner = rf"{re.escape(opener[-1])}(?:{part}){{0,{_MAX_CODE}}}{re.escape(closer)}"
    return rf"{re.escape(opener)}(?:{part}|{inner}){{0,{_MAX_CODE}}}{re.escape(closer)}|"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
