"""How much to suggest: decided from the syntax around the cursor, before anything is generated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from codespec.languages.registry import record_of
from codespec.reasons import ShapeReason
from codespec.suggest import tags, word_blocks, words
from codespec.suggest.heads import branches_of, opens_indented
from codespec.suggest.place import Place, column_of_key, indentation
from codespec.suggest.readings import in_comment, opens_comment
from codespec.suggest.rest_of_line import begun_above
from codespec.syntax import markup
from codespec.syntax.lexer import CLOSER_OF, NOTHING, Lexed, joined, scan

Kind: TypeAlias = Literal["inline", "line", "statement", "block"]
_IN_TEMPLATE = re.compile(r"`[^`]*\$\{[^`{}]*\Z")
_MAX_HEAD_LINES = 40
_SWITCH = re.compile(r"\b(?:switch|select)\b[^\n]*\Z")
_CASES = ("case ", "default:", "default ", "@unknown default")
# Of strings that stand in statements, patterns among them.
_CLOSERS = ("'", '"', "/", "!", "|")
# What an editor may have put after the cursor by itself.
_ONLY_CLOSING = re.compile(r"[\s)\]}>\"'`;:,.]*")


@dataclass(frozen=True, slots=True)
class Shape:
    """kind: "inline", within its line; "line", to the end of the line; "statement", to the end of
    one, with its body; "block", to the end of the body the cursor stands in.
    why: the syntax that decided it.
    floor: indentation, in columns, that lines of the block have at least.
    closes: the bracket or word that ends the block is missing after the cursor, so it is suggested,
    too.
    branches: what lines begin with that belong to the block though they are not in as far.
    column: the indentation that those lines have, -1: any.
    over_lines: the line may be the next one, in a string or comment that goes on there.
    body: whether a statement that opens a block is completed with it; not where it has one.
    below: the column of the next statement, if the cursor's line is whole and nothing of its block
    follows; -1: nothing is suggested there.
    closer, head: text of words that ends the block, and the column of its head, where they may have
    to be counted.
    """

    kind: Kind
    why: ShapeReason
    floor: int = 0
    closes: bool = False
    branches: tuple[str, ...] = ()
    column: int = -1
    over_lines: bool = False
    body: bool = False
    below: int = -1
    closer: str = ""
    head: int = 0


def shape_at(place: Place, *, multiline: bool = True) -> Shape:
    """multiline: False where the caller wants one line."""
    line, rest, language = place.line_prefix, place.rest, place.language
    if rest.strip():
        if not _ONLY_CLOSING.fullmatch(rest):
            return Shape("inline", ShapeReason.TEXT_AFTER)
        return Shape("inline", ShapeReason.CLOSED_AFTER)
    if not multiline:
        return Shape("line", ShapeReason.ONE_LINE)
    here = place.line
    # A string that ends with its line is a part of the statement, and so is code in one.
    in_text = _in_text(place)
    opener = _opener(here.code, language) if line.strip() and not in_text else ""
    head = _head(place) if opener or here.extra else here
    if not opener and here.extra and not in_text:
        opener = words.opened(words.in_one_line(head.code), language)
    is_code = here.inside in ("", *_CLOSERS) or _IN_TEMPLATE.search(line) is not None
    if here.inside == "comment" and opener:
        # It ends with its line, and then the block follows.
        is_code = not here.then("\n").inside
    if in_text or not is_code:
        over_lines = in_text or bool(here.then("\n").inside)
        return Shape("line", ShapeReason.IN_TEXT, over_lines=over_lines)
    if line.strip():
        if opener:
            # Of a head of several lines, the first tells how far in its body is.
            item = record_of(language).item
            indent = min(column_of_key(text, item) for text in (line, head.text))
            floor = indent + 1
            if _has_body(place, opener, indent, floor):
                return Shape("line", ShapeReason.BLOCK_WITH_BODY)
            block = _block(place, ShapeReason.OPENS_BLOCK, here.code, opener, indent, floor)
            # What a bracket closes that is missing may be the head of a body, or be called.
            if not block.closes or not here.code.rstrip().endswith(("(", "[")):
                return block
        has_body = indentation(place.line_below) > indentation(line)
        why = ShapeReason.IN_STATEMENT
        return Shape("statement", why, indentation(line), body=not has_body, below=_below(place))
    return _on_blank_line(place)


def _below(place: Place) -> int:
    """The column of the cursor's statement, if its block ends with it; else -1."""
    column = indentation((_head(place) if place.line.extra else place.line).text)
    next_line = place.below[0] if place.below else ""
    return -1 if next_line.strip() and indentation(next_line) >= column else column


def _on_blank_line(place: Place) -> Shape:
    line = place.line_prefix
    head = _head(place)
    facts = record_of(place.language)
    opener = _opener(head.code, place.language)
    opener = opener or words.opened(words.in_one_line(head.code), place.language)
    indent = column_of_key(head.text, facts.item)
    may_be_level = facts.item != "" or _is_counted(opener, place.language)
    if not opener or (line and indentation(line) < indent + (not may_be_level)):
        why = ShapeReason.BETWEEN_STATEMENTS
        return Shape("statement", why, indentation(line), body=True)
    floor = max(indentation(line), indent + 1)
    if _has_body(place, opener, indent, max(floor, 1)):
        return Shape("statement", ShapeReason.BLOCK_GOES_ON, floor, body=True)
    return _block(place, ShapeReason.EMPTY_BLOCK, head.code, opener, indent, floor)


def _is_counted(opener: str, language: str) -> bool:
    """True if the words of the block have to be counted where its body is not further in."""
    return words.is_closer(opener, language) and words.words_of(language).flat


def _has_body(place: Place, opener: str, indent: int, floor: int) -> bool:
    """True if lines below the cursor's belong to the block that it is in."""
    below, item = place.line_below, record_of(place.language).item
    if indentation(below) >= floor:
        return True
    if opener == ":":
        return indentation(below) == indent and item != "" and f"{below.strip()} ".startswith(item)
    if not below or not _is_counted(opener, place.language):
        return False
    return not words.goes_on(below, place.language) and word_blocks.is_closed(place, indent, opener)


def _block(
    place: Place, why: ShapeReason, head: str, opener: str, indent: int, floor: int
) -> Shape:
    """head: the code that opens it, with `opener`; indent: of its line."""
    closes = opener != ":" and not _is_closed(place, indent, opener)
    if of_indentation := branches_of(head, place.language):
        return Shape("block", why, floor, closes, of_indentation, indent)
    may_branch = closes or opener == "{" or _is_ended(place, opener)
    branches = _branches(head, opener, place.language) if may_branch else ()
    if _is_counted(opener, place.language):
        return Shape("block", why, floor, closes, branches, closer=opener, head=indent)
    return Shape("block", why, floor, closes, branches)


def _is_ended(place: Place, opener: str) -> bool:
    """True if the line below ends a block of words, and is no branch of it."""
    is_word = words.is_closer(opener, place.language)
    return is_word and words.ends(place.line_below, place.language)


def _head(place: Place) -> Lexed:
    """The end of the last statement up to the cursor, from the line that it begins in, as far as
    brackets tell."""
    language = place.language
    n_first, n = _last_line_of_code(place)
    last = head = _line_above(place, n) if n >= n_first else NOTHING
    is_markup = record_of(language).is_markup
    while n > n_first and (
        (not is_markup and head.extra) or tags.ends_tag(head.text.rstrip(), language)
    ):
        n -= 1
        head = joined([_line_above(place, n), head], language)
    return last if tags.ends_tag(head.text.rstrip(), language) else head


def _line_above(place: Place, n: int) -> Lexed:
    """A line of `place.above`, or the cursor's up to the cursor, which is the next one."""
    return place.lines_above[n] if n < len(place.above) else place.line


def _last_line_of_code(place: Place) -> tuple[int, int]:
    """(the first line that may belong to a head, the last one of code, which is before it where
    there is none). Comments and documentation between code and the cursor are the block's
    beginning, too."""
    lines = [*place.above, place.line_prefix]
    n = len(lines) - 1
    while n >= 0 and not lines[n].strip():
        n -= 1
    n_first = max(0, n + 1 - _MAX_HEAD_LINES)
    quoted = False
    facts = record_of(place.language)
    for at in range(n, n_first - 1, -1):
        stripped = lines[at].strip()
        if facts.docstring and stripped.count(facts.docstring) % 2:
            quoted = not quoted
        elif not quoted and stripped and not stripped.startswith(facts.documentation):
            return n_first, at
    return n_first, n_first - 1


def _opener(code: str, language: str) -> str:
    """Bracket that opens a block at the end of a line, for a word the one that closes it, for a tag
    the one that closes its element, or ""."""
    last = code.rstrip()[-1:]
    if last in CLOSER_OF:
        return last
    if word := words.opened(code, language):
        return word
    if tag := tags.opened(code, language):
        return tag
    return ":" if opens_indented(code, language) else ""


def _branches(code: str, opener: str, language: str) -> tuple[str, ...]:
    if words.is_closer(opener, language):
        return words.branches(language)
    if record_of(language).is_markup:
        return markup.BRANCHES
    return _CASES if opener == "{" and _SWITCH.search(code) else ()


def _is_closed(place: Place, indent: int, opener: str) -> bool:
    """True if the next line that is not deeper closes the block."""
    if _is_counted(opener, place.language):
        return word_blocks.is_closed(place, indent, opener)
    for line in place.below:
        if line.strip() and indentation(line) <= indent:
            if words.is_closer(opener, place.language):
                closes = words.closes(line, place.language, opener)
            elif opener in CLOSER_OF:
                closes = line.strip().startswith(CLOSER_OF[opener])
            else:
                closes = tags.closes(line, place.language, opener)
            return indentation(line) == indent and closes
    return False


def _in_text(place: Place) -> bool:
    """True if the cursor is inside a comment or a string that began above its line."""
    if place.parsed is None:
        here = place.line
        goes_on = here.begun is not None and here.inside != "" and here.start == 0
        return goes_on or in_comment(place)
    if opens_comment(place):
        return True
    begun = begun_above(place)
    return bool(begun and scan(begun + place.line_prefix, place.language).inside)
