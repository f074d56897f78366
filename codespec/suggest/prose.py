"""Brackets in text that is no code: in prose, in comments, in languages that have none."""

from __future__ import annotations

import re

from codespec.languages.registry import record_of
from codespec.suggest.place import Place
from codespec.syntax.lexer import OPENER_OF
from codespec.syntax.lexis import FACE, lexis_of


def is_in_prose(place: Place, bracket: str) -> bool:
    """True if brackets at the cursor are text."""
    facts = record_of(place.language)
    if facts.prose or place.line.inside == "comment":
        return True
    lexis = lexis_of(facts)
    m = lexis.pattern.match(bracket)
    return m is not None and lexis.of(m) is not None


def n_unopened(line: str, closer: str) -> int:
    """Number of brackets in prose that close nothing; those of faces do not count."""
    depth = n = 0
    for m in re.finditer(rf"{FACE}|[{re.escape(OPENER_OF[closer] + closer)}]", line):
        if m[0] == closer:
            depth, n = max(0, depth - 1), n + (depth == 0)
        depth += m[0] == OPENER_OF[closer]
    return n


def is_in_face(place: Place, line: str, at: int) -> bool:
    """True if a bracket of a text's first line belongs to a face, in prose."""
    if line[at] not in OPENER_OF or not is_in_prose(place, line[at]):
        return False
    at += len(place.line_prefix)
    faces = re.finditer(FACE, place.line_prefix + line)
    return any(m.start() < at < m.end() for m in faces)
