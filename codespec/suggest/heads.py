"""Heads of blocks that are told by their indentation."""

from __future__ import annotations

import re

from codespec.languages.registry import record_of
from codespec.suggest import words
from codespec.syntax.lexer import is_label

_CASE = re.compile(r"\s*(?:case\b|default\s*:|(?:public|protected|private)\s*:\Z)")
_MAX_HEAD = 1_000
"""Characters of a line that a pattern looks at; a longer one is data."""


def opens_indented(code: str, language: str) -> bool:
    """True if a line of code is a head that lines which are indented more belong to: in Python, of
    the cases of a switch, and where nothing is known of a language, as in YAML."""
    line = code.rstrip().rpartition("\n")[2]
    facts = record_of(language)
    heads = facts.heads
    if facts.indents and len(line) <= _MAX_HEAD and re.search(facts.indents, line):
        return True
    if heads == "label":
        return is_label(line, len(line) - 1, language) if line else False
    if heads == "arrow":
        return line.endswith("->") and not words.opened(line, language)
    return line.endswith(":") and (heads == "colon" or _CASE.match(line) is not None)


def branches_of(head: str, language: str) -> tuple[str, ...]:
    """Beginnings of lines, in the column of a head, that go on with its block, which indentation
    tells. Behind an item no other item does."""
    facts = record_of(language)
    line = f"{head.strip()} "
    if facts.item:
        return () if line.endswith(facts.item) else (facts.item,)
    return tuple(b for b in facts.branches if b[0].isalpha() or not line.startswith(b))
