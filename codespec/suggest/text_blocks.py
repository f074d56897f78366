"""Lines of prose that belong together: all of an item, and what stands between brackets that end a
line and begin another one, as in code without fences."""

from __future__ import annotations

import re

from codespec.languages.registry import record_of
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import indentation
from codespec.syntax.lexer import CLOSER_OF, OPENER_OF


def goes_on_below(head: Candidate, below: str) -> bool:
    """True if the lines `below` belong to the text in prose that ends with `head`."""
    lines = [line for line in head.head.split("\n") if line.strip()]
    column, at = indentation(lines[0]), indentation(below)
    if at < column:
        return False
    holds = record_of(head.place.language).holds
    if at > column and holds and re.match(holds, lines[0]):
        return True
    is_closing = below.lstrip()[0] in OPENER_OF
    around = next((s for s in reversed(lines) if indentation(s) < at + is_closing), "")
    closer = CLOSER_OF.get(around.rstrip()[-1:], "")
    return closer != "" and below.lstrip().startswith(closer if is_closing else "")
