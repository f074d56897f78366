"""Names that were imported: the same import in other files, at the place where sorted imports have
it, or as one more name of an import from the same module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from codespec.edits.line_tokens import indentation, is_import, words
from codespec.edits.pattern import FittingPlace, Pattern
from codespec.edits.searched_text import SearchedText
from codespec.edits.substitutions import MAX_CONTEXT
from codespec.syntax.text import common_prefix

_LISTS = (
    re.compile(r"(?P<head>from (?P<module>\S+) import \(?)(?P<names>[\w, ]+)(?P<tail>\)?)$"),
    re.compile(
        r"(?P<head>import (?:type )?\{ ?)(?P<names>[\w, ]+?)"
        r"(?P<tail>,? ?\} from (?P<module>['\"][^'\"]+['\"]);?)$"
    ),
    re.compile(r"(?P<head>use (?P<module>[\w:]+)::\{)(?P<names>[\w, ]+)(?P<tail>\};)$"),
)
"""Imports of names from a module on one line: Python's, JavaScript's, Rust's."""

_DEFAULT = re.compile(r"import (?:type )?(?:\* as )?(?P<name>\w{2,}) from\b")
"""An import of a whole module, or of what it exports first, in JavaScript."""


@dataclass(frozen=True, slots=True)
class ImportedNames:
    """An import of names from a module on one line. head, tail: the line around the names."""

    module: str
    names: tuple[str, ...]
    head: str
    tail: str

    def with_name(self, name: str) -> str:
        """The line with one more name, at its place where the names are sorted, else at the
        end."""
        at = _place(self.names, name)
        at = len(self.names) if at is None else at
        names = (*self.names[:at], name, *self.names[at:])
        return f"{self.head}{', '.join(names)}{self.tail}"


def imported_names(line: str) -> ImportedNames | None:
    """An import of names, of a line without indentation; None for other lines."""
    for form in _LISTS:
        match = form.match(line)
        if match is not None:
            names = tuple(name.strip() for name in match["names"].split(","))
            if all(names):
                return ImportedNames(match["module"], names, match["head"], match["tail"])
    return None


def new_imports(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """(line, name, module) of each name that lines import now and did not before, see
    `ImportPattern`."""
    before = {name for line in old for name in words(line)}
    for line in (line.strip() for line in new):
        if not is_import(line):
            continue
        known = imported_names(line)
        if known is not None:
            for name in known.names:
                if name not in before and len(name) > 1:
                    yield f"{known.head}{name}{known.tail}", name, known.module
        elif line not in {other.strip() for other in old}:
            default = _DEFAULT.match(line)
            names = [default["name"]] if default else words(line)[-1:]
            if names and names[0] not in before:
                yield line, names[0], ""


class ImportPattern(Pattern):
    """A name that a file has come to import from a module."""

    kind: ClassVar[str] = "import"

    def __init__(self, line: str, name: str, module: str) -> None:
        """line: an import without indentation, which holds the name. module: "" for an import
        without a list of names."""
        super().__init__("", line, name)
        self._line, self._name, self._module = line, name, module

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        if home is None or text.suffix != home.suffix or text.path == home.path:
            return
        uses = [n for n in text.find(self._name) if self._name in words(text.body(n))]
        imports = text.imports
        if not imports or not uses or not set(imports).isdisjoint(uses):
            return
        place = self._as_name(text, imports) if self._module else None
        yield from [place] if place else self._as_line(text, imports)

    def _as_name(self, text: SearchedText, imports: Sequence[int]) -> FittingPlace | None:
        """One more name of an import from the same module."""
        for number in imports:
            known = imported_names(text.body(number))
            if known is not None and known.module == self._module:
                line = text.lines[number]
                new = indentation(line) + known.with_name(self._name) + line[len(line.rstrip()) :]
                return FittingPlace(number, 1, (new,), self.makings[-1], n_left=1, n_right=1)
        return None

    def _as_line(self, text: SearchedText, imports: Sequence[int]) -> Iterator[FittingPlace]:
        """A line among those that begin alike, where it is between two of them in order."""
        head = '"' if self._line[0] == '"' else self._line.split(maxsplit=1)[0]
        alike = [n for n in imports if text.body(n).startswith(head)]
        if not alike:
            return
        shared, nearest = max((common_prefix(text.body(n), self._line), -n) for n in alike)
        run = _run(alike, -nearest)
        at = _place([text.body(n) for n in run], self._line)
        at = -nearest + 1 if at is None else run[0] + at
        new = indentation(text.lines[-nearest]) + self._line
        n_left = min(MAX_CONTEXT, len(words(self._line[:shared])))
        yield FittingPlace(at, 0, (new,), self.makings[-1], n_left=n_left)


def _run(numbers: Sequence[int], number: int) -> range:
    """The numbers around one that follow one another without a gap."""
    known = frozenset(numbers)
    first = last = number
    while first - 1 in known:
        first -= 1
    while last + 1 in known:
        last += 1
    return range(first, last + 1)


def _place(ordered: Sequence[str], new: str) -> int | None:
    """The index at which a text belongs among ordered ones, with capitals apart or not; None where
    they are in no order."""
    for key in (str, str.lower):
        if all(key(a) <= key(b) for a, b in pairwise(ordered)):
            after = (i for i, other in enumerate(ordered) if key(other) > key(new))
            return next(after, len(ordered))
    return None
