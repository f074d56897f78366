"""Code in which a statement cannot be complete: it goes on in the next line."""

from __future__ import annotations

import re
from functools import cache

from codespec.languages.base import Language
from codespec.languages.registry import record_of
from codespec.suggest import tags
from codespec.suggest.candidate import Candidate
from codespec.suggest.heads import opens_indented
from codespec.suggest.place import indentation
from codespec.syntax.lexer import CLOSER_OF, OPENER_OF

# What a statement cannot end with, and what looks like it.
_GOES_ON = re.compile(r"(?:[-+*/%&|^=<>!?.\\]|=>|->|\b(?:and|or|not|in|is))$")
_ENDS = re.compile(r"(?:\+\+|--|/|[A-Za-z_\d)\]}/\"]>)$")
# What is no statement, but belongs to the one below; without the brackets that it ends with.
_BELONGS = re.compile(r"(?:^|\n)[ \t]*(?:@[\w.]+|#!?|template\s*<.*>)\Z")
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|endif)", re.MULTILINE)
# Brackets of types, which comparisons look like but for their blanks; and over lines of their own.
_OPENS_TYPES = re.compile(r"\w<(?![<=\s])|\w<$", re.MULTILINE)
_CLOSES_TYPES = re.compile(r"(?<![=-])>")
_OPENS_TYPE_LINES = re.compile(r"(?:\w|^[ \t]*)<$", re.MULTILINE)
_CLOSES_TYPE_LINES = re.compile(r"^[ \t]*>", re.MULTILINE)
# The middle of a condition, not a label.
_OR_ELSE = re.compile(r"^(?![ \t]*case\b)[^\n]*\?[^\n]*:\Z", re.MULTILINE)


def must_go_on(head: Candidate, *, has_body: bool) -> bool:
    """True if a statement that reaches to the end of `head` cannot be complete there.

    has_body: False where what it opens is filled already.
    """
    language = head.place.language
    facts = record_of(language)
    found, in_tags = head.line, head.tags
    is_open = found.is_open if in_tags is None else bool(in_tags)
    if facts.is_markup and found.is_open and not is_open:
        # An attribute's value, or code in it; not what is said in brackets.
        is_open = head.head.lstrip("\n").split("\n", 1)[0].rstrip().endswith(tuple(CLOSER_OF))
    if facts.prose:
        # An open bracket is text, but where nothing is known it may begin a block of lines.
        is_open = not facts.unfinished and any(
            not found.text[end + 1 :].split("\n", 1)[0].strip() for _, end in found.open
        )
    if is_open and not has_body:
        is_bracket = found.code.rstrip()[-1:] in CLOSER_OF
        if is_bracket or tags.last_opened(in_tags, head.head):
            return False  # what it opens is filled already
    if is_open or (in_tags is None and found.inside not in ("", "comment")):
        return True
    if found.inside and found.then("\n").inside:
        return True  # a comment that does not end with its line
    code = found.code.rstrip()
    if facts.unfinished:
        is_head = opens_indented(code, language)
        return not is_head and re.search(facts.unfinished, code) is not None
    if facts.grammar is not None and _belongs_below(code, facts):
        return True
    if facts.comma_goes_on and code.endswith(","):
        return True
    if facts.conditional and _OR_ELSE.search(code):
        return True
    if facts.types_in_angles and _is_in_types(code):
        return True
    if facts.clauses and _in_clause(facts).search(code):
        return True
    if facts.preprocessor:
        conditionals = _CONDITIONAL.findall(head.head)
        if conditionals.count("if") > conditionals.count("endif"):
            return True
    return bool(_GOES_ON.search(code)) and not _ENDS.search(code)


def is_closed_below(head: Candidate, below: str) -> bool:
    """True if the lines `below` begin with a bracket that closes what is around a statement, and
    that stands below the cursor already."""
    closer = below.lstrip()[:1]
    is_out = indentation(below) < indentation(head.head.lstrip("\n"))
    return closer in OPENER_OF and is_out and head.place.line_below.lstrip().startswith(closer)


@cache
def _in_clause(facts: Language) -> re.Pattern[str]:
    """A pattern of heads that end in one of their clauses."""
    return re.compile(rf"^[ \t]*(?:{'|'.join(facts.clauses)})\b[^{{;]*\Z", re.MULTILINE)


def _is_in_types(code: str) -> bool:
    n_lines = len(_OPENS_TYPE_LINES.findall(code)) - len(_CLOSES_TYPE_LINES.findall(code))
    n_open = len(_OPENS_TYPES.findall(code)) - len(_CLOSES_TYPES.findall(code))
    return n_lines > 0 or (code.endswith(",") and n_open > 0)


def _belongs_below(code: str, facts: Language) -> bool:
    """True if balanced code ends with a decorator, an annotation, an attribute, or what makes a
    template of what follows."""
    depth, at = 0, len(code)
    while at and (depth or code[at - 1] in ")]"):
        at -= 1
        depth += (code[at] in ")]}") - (code[at] in "([{")
    if facts.bracket_attributes and code[at:].startswith("["):
        return not code[:at].rpartition("\n")[2].strip()
    return _BELONGS.search(code[:at]) is not None
