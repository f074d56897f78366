"""Imports of names from a module, on one line or on several with a name each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from codespec.edits.line_tokens import indentation, is_import, is_listed_name, words
from codespec.edits.searched_text import MAX_IMPORTED, SearchedText

_ON_ONE_LINE = (
    re.compile(r"(?P<head>from (?P<module>\S+) import \(?)(?P<names>[\w, ]+)(?P<tail>\)?)$"),
    re.compile(
        r"(?P<head>import (?:type )?\{ ?)(?P<names>[\w, ]+?)"
        r"(?P<tail>,? ?\} from (?P<module>['\"][^'\"]+['\"]);?)$"
    ),
    re.compile(r"(?P<head>use (?P<module>[\w:]+)::\{)(?P<names>[\w, ]+)(?P<tail>\};)$"),
)
"""Python's, JavaScript's, Rust's."""
_ON_SEVERAL = (
    (re.compile(r"(?P<head>from (?P<module>\S+) import )\($"), re.compile(r"(?P<tail>)\)$")),
    (
        re.compile(r"(?P<head>import (?:type )?\{)$"),
        re.compile(r"(?P<tail>\} from (?P<module>['\"][^'\"]+['\"]);?)$"),
    ),
    (re.compile(r"(?P<head>use (?P<module>[\w:]+)::\{)$"), re.compile(r"(?P<tail>\};)$")),
)
"""(line before the names, line after them) of the same languages."""


@dataclass(frozen=True, slots=True)
class ImportedNames:
    """An import of names from a module. head, tail: what stands around the names on one line.
    lines: numbers of the lines before and after the names; None for an import on one line."""

    module: str
    names: tuple[str, ...]
    head: str
    tail: str
    lines: tuple[int, int] | None = None

    def of(self, names: Sequence[str]) -> str:
        """The import on one line, with these names."""
        return f"{self.head}{', '.join(names)}{self.tail}"

    def place(self, name: str) -> int:
        """The index at which one more name goes: its place where the names are sorted, else the
        end."""
        at = place_among(self.names, name)
        return len(self.names) if at is None else at


def imported_names(line: str) -> ImportedNames | None:
    """An import of names on one line, without indentation; None for other lines."""
    for form in _ON_ONE_LINE:
        match = form.match(line)
        if match is not None:
            names = tuple(name.strip() for name in match["names"].split(","))
            if all(names):
                return ImportedNames(match["module"], names, match["head"], match["tail"])
    return None


def import_around(text: SearchedText, line: int) -> ImportedNames | None:
    """The import over several lines that a line belongs to; None for other lines, and where a line
    of it holds other than one name."""
    first = line - 1 if text.body(line)[:1] in (")", "}") else line
    while line - first < MAX_IMPORTED and is_listed_name(text.body(first)):
        first -= 1
    if text.body(first)[-1:] not in ("(", "{"):
        return None
    last = first + 1
    while last - first < MAX_IMPORTED and is_listed_name(text.body(last)):
        last += 1
    names = tuple(text.body(number).rstrip(",") for number in range(first + 1, last))
    if not names or any(len(words(name)) != 1 for name in names):
        return None
    for begins, ends in _ON_SEVERAL:
        head, tail = begins.match(text.body(first)), ends.match(text.body(last))
        if head is not None and tail is not None:
            module = {**head.groupdict(), **tail.groupdict()}["module"]
            space = " " if tail["tail"].startswith("} ") else ""
            around = head["head"] + space, space + tail["tail"]
            return ImportedNames(module, names, *around, (first, last))
    return None


def with_name(
    text: SearchedText, known: ImportedNames, line: int, name: str
) -> tuple[int, int, tuple[str, ...]]:
    """(first line, number of old lines, new lines) of one more name of an import. line: of an
    import on one line."""
    at = known.place(name)
    if known.lines is None:
        there = text.lines[line]
        names = (*known.names[:at], name, *known.names[at:])
        return line, 1, (indentation(there) + known.of(names) + there[len(there.rstrip()) :],)
    number = known.lines[0] + 1 + at
    last = text.lines[known.lines[1] - 1]
    prefix = indentation(text.lines[known.lines[0] + 1])
    if number < known.lines[1] or last.rstrip().endswith(","):
        return number, 0, (f"{prefix}{name},",)
    return number - 1, 1, (f"{last.rstrip()},", prefix + name)


def without_name(
    text: SearchedText, known: ImportedNames, line: int, name: str
) -> tuple[int, int, tuple[str, ...]]:
    """The same of one name less. line: the one that holds it."""
    names = [other for other in known.names if other != name]
    if known.lines is None:
        there = text.lines[line]
        whole = indentation(there) + known.of(names) + there[len(there.rstrip()) :]
        return line, 1, (whole,) if names else ()
    first, last = known.lines
    return (line, 1, ()) if names else (first, last + 1 - first, ())


def renamed_in_place(old: str, new: str) -> str | None:
    """The old line with the one name renamed that two versions of an import do not share, where the
    new one has its names in another order; None for other lines."""
    before = imported_names(old) if is_import(old) else None
    after = imported_names(new) if before is not None else None
    if before is None or after is None or len(before.names) != len(after.names):
        return None
    gone = [name for name in before.names if name not in after.names]
    come = [name for name in after.names if name not in before.names]
    if len(gone) != 1 or len(come) != 1:
        return None
    names = [come[0] if name == gone[0] else name for name in before.names]
    return before.of(names) if names != list(after.names) else None


def in_order_again(old: str, new: str) -> str:
    """The new version of an import on one line, with its names sorted if those of the old one were;
    other lines as they are."""
    after = imported_names(new)
    before = imported_names(old) if after is not None else None
    if after is None or before is None:
        return new
    order = _order(before.names)
    return new if order is None else after.of(sorted(after.names, key=order))


def place_among(ordered: Sequence[str], new: str) -> int | None:
    """The index at which a text belongs among ordered ones; None where they are in no order."""
    order = _order(ordered)
    if order is None:
        return None
    after = (i for i, other in enumerate(ordered) if order(other) > order(new))
    return next(after, len(ordered))


def _as_text(name: str) -> tuple[int, str]:
    return 0, name


def _without_case(name: str) -> tuple[int, str]:
    return 0, name.lower()


def _by_kind(name: str) -> tuple[int, str]:
    """Constants, then types, then other names."""
    is_constant = name.isupper() and len(name) > 1
    return 0 if is_constant else 1 if name[:1].isupper() else 2, name


def _by_kind_reversed(name: str) -> tuple[int, str]:
    kind, _ = _by_kind(name)
    return -kind, name


_ORDERS = (_as_text, _without_case, _by_kind, _by_kind_reversed)


def _order(names: Sequence[str]) -> Callable[[str], tuple[int, str]] | None:
    """The first order in which names are: as texts, with capitals ignored, or by kind; None where
    they are in none."""
    orders = (order for order in _ORDERS if all(order(a) <= order(b) for a, b in pairwise(names)))
    return next(orders, None)
