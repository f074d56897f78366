"""Names that belong to one function: its parameters and variables, as its text declares them.

Functions are known by their heads and by indentation, without a parser: a text is often broken
while it is edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from codespec.edits.line_tokens import begins_function, indentation
from codespec.edits.pattern import Pattern
from codespec.edits.searched_text import SearchedText
from codespec.languages.base import Declares
from codespec.languages.registry import record_at

_MARK = "\0"
"""Stands for a name, which is no part of a longer one if `_MARKED` matches."""
_MARKED = rf"(?<![\w.\0]){_MARK}(?![\w\0])"
_ARGUMENT = re.compile(rf"(?:^|[(,]\s*){_MARKED}=(?!=)")
_MAX_LINES = 400
"""Lines above and below that are looked at for the ends of a function."""
_MAX_HEAD = 20
"""Lines of a function's head."""
_GOES_ON = re.compile(r"[)\]}{]|where\b")
"""The beginning of a line that goes on with the head of a function, or ends it."""
_BESIDE = ("//", "#", "*", "/*", "@", "///")
"""Beginnings of lines above a function that belong to it: comments, attributes and decorators."""


def is_own_variable(
    pattern: Pattern, home: SearchedText | None, text: SearchedText, line: int
) -> bool | None:
    """True if a pattern replaced the name of a parameter or variable in one function only, and a
    line stands in that; False for a line elsewhere, where the name is another's. None where it
    replaced other things or in several functions, and where an argument is passed by its name.

    home: the open document in which the pattern was made last.
    """
    old, new = pattern.removed.strip(), pattern.added.strip()
    if home is None or not (old.isidentifier() and new.isidentifier()):
        return None
    numbers = tuple(making.line for making in pattern.makings if making.change.path == home.path)
    if len(numbers) < len(pattern.makings):
        return None
    (lines,) = home.found_once(
        ("local name", numbers, old, new), lambda: [_lines_of_local(home, numbers, (old, new))]
    )
    if lines is None:
        return None
    if text.path == home.path and line in lines:
        return True
    return None if _ARGUMENT.search(_marked(text.body(line), (old,))) else False


def _lines_of_local(
    text: SearchedText, numbers: tuple[int, ...], names: tuple[str, ...]
) -> range | None:
    """The lines of the function that holds all these lines, with the comments above it, where one
    of the names is a parameter or a variable of it; None where none is."""
    function = _function_around(text, numbers[-1]) if max(numbers) < len(text.lines) else None
    if function is None:
        return None
    first, last = function
    head, n_head = _head(text, first)
    names = tuple(sorted(names, key=len, reverse=True))
    of_head, of_body = _declarations(record_at(text.path, "").declares)
    is_local = of_head.search(_marked(head, names)) is not None
    for number in range(first + n_head, last):
        body = _marked(text.body(number), names)
        if _MARK not in body:
            continue
        if body.startswith(("global ", "nonlocal ")) and re.search(_MARKED, body):
            return None
        is_local = is_local or of_body.search(body) is not None
    while first and text.body(first - 1).startswith(_BESIDE):
        first -= 1
    is_alone = all(first <= number < last for number in numbers)
    return range(first, last) if is_local and is_alone else None


def _function_around(text: SearchedText, line: int) -> tuple[int, int] | None:
    """(first line, line after the last one) of the outermost function that holds a line."""
    found: int | None = None
    for number in _lines_around(text, line):
        if begins_function(_head(text, number)[0]):
            found = number
    if found is None:
        return None
    depth = len(indentation(text.lines[found]))
    end = line + 1
    for there in text.lines[end : end + _MAX_LINES]:
        body = there.lstrip()
        if body and len(there) - len(body) <= depth and not _GOES_ON.match(body):
            break
        end += 1
    return found, end


def _lines_around(text: SearchedText, line: int) -> Iterator[int]:
    """The line, and those above that are less deep than all below them: what it stands in."""
    depth = len(indentation(text.lines[line])) + 1
    for number in range(line, max(-1, line - _MAX_LINES), -1):
        there = text.lines[number]
        body = there.lstrip()
        here = len(there) - len(body)
        if here >= depth or not body:
            continue
        # A line that ends a head stands for the one that begins it, at the same depth.
        depth = here + 1 if _GOES_ON.match(body) else here
        yield number
        if not depth:
            return


def _head(text: SearchedText, line: int) -> tuple[str, int]:
    """(the head of what a line begins, on one line, its number of lines)."""
    head = text.body(line)
    n_lines = 1
    while head.count("(") > head.count(")") and n_lines < _MAX_HEAD:
        head += " " + text.body(line + n_lines)
        n_lines += 1
    return head, n_lines


def _marked(line: str, names: tuple[str, ...]) -> str:
    """The line with `_MARK` for each of the names, the longest first: patterns are the same for all
    names then."""
    for name in names:
        line = line.replace(name, _MARK)
    return line


@cache
def _declarations(declares: Declares) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a marked parameter in a function's head, and of a variable on one of its lines.
    declares: see `Language`."""
    in_head = [rf"{_MARKED}\??\s*:(?!:)"]
    in_body = [
        rf"\b(?:let|const|var|val|auto)\b[^=;]*?{_MARKED}",
        rf"^(?:if |for |switch |case )?(?:[\w*]+,\s*)*{_MARKED}(?:\s*,\s*[\w*]+)*\s*:=",
        rf"\bfor\b[^=;]*?{_MARKED}[\w\s,)]*?(?:\b(?:in|of)\b|:)",
    ]
    if declares == "type last":
        in_head.append(rf"[(,]\s*{_MARKED}(?:\s*,\s*\w+)*\s+(?:[*\[]|\.\.\.|\w)")
    else:
        in_head.append(rf"[(,]\s*(?:\*+|&|\.\.\.|mut\s+)?{_MARKED}\s*[,)=]")
    if declares == "type first":
        in_head.append(rf"[\w>\]*&]\s*[\s*&]{_MARKED}\s*[,)=\[]")
        typed = r"(?!(?:return|else|case|goto|throw|new|delete|await|yield)\b)[\w:<>,.\[\]]+"
        in_body.append(rf"^(?:{typed}[\s*&]+)+{_MARKED}\s*(?:=(?!=)|[;:\[{{(])")
    if declares == "by assignment":
        in_body += [
            rf"^(?:[\w*]+,\s*)*\$?{_MARKED}(?:\s*,\s*[\w*]+)*\s*(?::[^=]+)?=(?!=)",
            rf"\bas\s+{_MARKED}",
        ]
    return re.compile("|".join(in_head)), re.compile("|".join(in_body))
