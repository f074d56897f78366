"""Text after the cursor in its line stays what it is: code, a string, or a comment.

Lines are read by the record of their language. Where that refuses a candidate, the grammar is
asked, which knows what a record does not: expressions between slashes, text between tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from tree_sitter import Node

from codespec.languages.base import Language
from codespec.languages.registry import record_of
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import Place
from codespec.suggest.trials import Trials, once
from codespec.syntax.closers import character_around
from codespec.syntax.lexis import Kind, Lexis, lexis_of
from codespec.syntax.trees import error_spans

_TEXT = re.compile(r"comment|string|char_literal|heredoc")
_STRING = re.compile(r"string|char|heredoc")
_CODE_IN_TEXT = re.compile(r"interpolation|substitution")


@dataclass(frozen=True, slots=True)
class _Rest:
    """The end of a text, from the cursor on.

    around: opener of the string or comment that the cursor is in, "" in code. kinds: of each
    character that is not blank. around_kind: of what the cursor is in. start: where that begins, -1
    in code. left_open: opener of the string that the text ends in, "" for none.
    """

    around: str
    kinds: tuple[Kind, ...]
    around_kind: Kind = "code"
    start: int = -1
    left_open: str = ""

    def is_like(self, other: _Rest) -> bool:
        return self.around == other.around and self.kinds == other.kinds


def keeps_rest(place: Place, trials: Trials | None) -> Callable[[Candidate], bool]:
    """A judge of variants of the suggestion for one place."""
    allowed = once(lambda: _allowed(place))

    def keeps(variant: Candidate) -> bool:
        if not _is_judged(place):
            return True
        after = _read(variant.head + place.rest, len(variant.head), place.language)
        if any(after.is_like(before) for before in allowed()):
            return True
        # A line that begins in a string or comment cannot be read by itself.
        if begun := begun_above(place) or (place.begun.beginning if place.begun else ""):
            n = len(begun) + len(place.line_prefix)
            before = _read(begun + place.line_prefix + place.rest, n, place.language)
            text = begun + variant.head + place.rest
            return _read(text, len(begun) + len(variant.head), place.language).is_like(before)
        return trials is not None and _keeps_by_tree(variant, after, trials, allowed()[0])

    return keeps


def begun_above(place: Place) -> str:
    """The beginning, up to the cursor's line, of the string or comment that the line begins in; ""
    where the tree knows of none."""
    if place.parsed is None or "\n" not in place.prefix:
        return ""
    start = place.line_start
    node = place.parsed.node_over(start - 1, start)
    while node is not None and not _CODE_IN_TEXT.search(node.type):
        if _TEXT.search(node.type) and node.start_byte < start - 1 and node.end_byte > start:
            return place.parsed.text[node.start_byte : start].decode()
        node = node.parent
    return ""


def before_comment(candidate: Candidate) -> str:
    """The text up to the comment in it that would take in the rest of the line; all of it where
    there is none."""
    place = candidate.place
    if not _is_judged(place):
        return candidate.text
    head = candidate.head
    found = _read(head + place.rest, len(head), place.language)
    start = found.start - len(place.line_prefix)
    if start < 0 or found.around_kind != "comment":
        return candidate.text
    return candidate.text[:start].rstrip()


def _is_judged(place: Place) -> bool:
    return not record_of(place.language).prose and bool(place.rest.strip())


def _allowed(place: Place) -> list[_Rest]:
    """The rest as it is, and as it becomes once a string is closed or opened that is left open, a
    character stands between its quotes, or an escape is whole that the cursor is in. A quote that
    begins a string in some places only may end one, or be text behind a word."""
    rest, language, before = place.rest, place.language, place.line_prefix
    now = _read(before + rest, len(before), language)
    found = [now]
    if now.around and (len(before) - len(before.rstrip("\\"))) % 2:
        found.append(_read(before[:-1] + rest, len(before) - 1, language))
    if quote := character_around(before, rest, record_of(language)):
        found.append(_read(f"{quote}x{rest}", len(quote) + 1, language))
        return found
    openers: list[str] = []
    if now.left_open:
        openers = ["" if now.around == now.left_open else now.left_open]
        other = _read(openers[0] + rest, len(openers[0]), language).left_open
        openers += ["x"] if not now.around else [other] if other else []
    elif not now.around:
        begun = (quotes.opener for quotes in record_of(language).strings if quotes.after)
        code = _code_of(rest, now.kinds)
        openers = [quote for quote in begun if _n_quotes(code, quote) % 2]
    elif _is_comment(rest, now.around, language):
        openers = [""]
    others = (_read(opener + rest, len(opener), language) for opener in openers)
    return found + [other for other in others if other.around_kind != "comment"]


def _code_of(rest: str, kinds: tuple[Kind, ...]) -> str:
    """The rest of a line, with blanks for its strings and comments. kinds: as in `_Rest`."""
    of_each = iter(kinds)
    return "".join(c if c.isspace() or next(of_each) == "code" else " " for c in rest)


def _n_quotes(line: str, quote: str) -> int:
    """Number of quotes of one sign; an apostrophe in a word is none."""
    sign = re.escape(quote)
    return len(re.findall(rf"(?<!\w){sign}|{sign}(?!\w)", line)) if len(quote) == 1 else 0


def _is_comment(rest: str, quote: str, language: str) -> bool:
    """True if the rest of a line, in which a string is open before it, is a comment once that is
    closed, as no single quote in it tells otherwise."""
    kinds = _read(rest, 0, language).kinds
    return rest[0].isspace() and {*kinds} == {"comment"} and _n_quotes(rest, quote) % 2 == 0


@cache
def _lexis(record: Language) -> Lexis:
    """Tokens of the language; of mark-up, whose text may hold any quote, its comments alone."""
    return lexis_of(replace(record, strings=()) if record.is_markup else record)


def _read(text: str, at: int, language: str) -> _Rest:
    """The text from `at` on."""
    lexis = _lexis(record_of(language))
    kinds: list[Kind] = ["code"] * (len(text) - at)
    around, start, left_open = "", -1, ""
    around_kind: Kind = "code"
    for m in lexis.pattern.finditer(text):
        token = lexis.of(m)
        if m.end() <= at or token is None or token.kind == "code":
            continue
        opener = token.opener or m.group()[:1]
        for n in range(max(0, m.start() - at), m.end() - at):
            kinds[n] = token.kind
        if m.start() < at:
            around, around_kind, start = opener, token.kind, m.start()
        if token.kind == "string" and m.end() == len(text) and token.unfinished(m.group()):
            left_open = opener
    shown: list[Kind] = [k for k, c in zip(kinds, text[at:], strict=True) if not c.isspace()]
    return _Rest(around, tuple(shown), around_kind, start, left_open)


def _may_hold_text(leaf: Node) -> bool:
    """False for signs and operators."""
    return leaf.is_named and "operator" not in leaf.type


def _keeps_by_tree(variant: Candidate, after: _Rest, trials: Trials, before: _Rest) -> bool:
    """True if the line follows its grammar with the variant, which has the opener of `after` in
    other text, and says the same of the rest as `before`."""
    place = variant.place
    new = variant.text.encode()
    root = trials.with_change(place.at, place.at, new)
    first, start = place.line_start, place.at + len(new)
    last = place.line_end + len(new)
    if root is None or any(s <= last and first <= e for s, e in error_spans(root)):
        return False
    if after.start >= 0:
        opened = first + len((variant.head + place.rest)[: after.start].encode())
        opener = root.descendant_for_byte_range(opened, opened + len(after.around))
        if opener is None or opener.child_count or not _may_hold_text(opener):
            return False
    kinds: list[Kind] = []
    for character in place.rest:
        n = len(character.encode())
        if not character.isspace():
            node = root.descendant_for_byte_range(start, start + n)
            kind: Kind = "code"
            while node is not None and kind == "code" and not _CODE_IN_TEXT.search(node.type):
                if "comment" in node.type:
                    kind = "comment"
                elif _STRING.search(node.type):
                    kind = "string"
                node = node.parent
            kinds.append(kind)
        start += n
    return tuple(kinds) == before.kinds
