"""Names that were imported: the same import in other files, at the place where sorted imports have
it, or as one more name of an import from the same module."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

from codespec.edits.import_lists import (
    ImportedNames,
    import_around,
    imported_names,
    place_among,
    with_name,
    without_name,
)
from codespec.edits.line_tokens import (
    holds_name,
    indentation,
    is_import,
    is_listed_name,
    words,
)
from codespec.edits.pattern import FittingPlace, Pattern
from codespec.edits.searched_text import MAX_IMPORTED, SearchedText
from codespec.edits.substitutions import MAX_CONTEXT
from codespec.syntax.text import common_prefix

_DEFAULT = re.compile(r"import (?:type )?(?:\* as )?(?P<name>\w{2,}) from\b")
"""An import of a whole module, or of what it exports first, in JavaScript."""


def listed_imports(text: SearchedText, numbers: Sequence[int]) -> Iterator[tuple[str, str, str]]:
    """The same of names in lists over several lines. numbers: of lines that may be such names."""
    for number in numbers:
        known = import_around(text, number)
        name = text.body(number).rstrip(",")
        if known is not None and name in known.names:
            yield known.of([name]), name, known.module


def listed_names(old: Sequence[str], new: Sequence[str]) -> Iterator[int]:
    """Numbers of the new lines that may be names of a list, and that no old line holds."""
    listed = [i for i, line in enumerate(new) if is_listed_name(line.strip())]
    before = {name for line in old for name in words(line)} if listed else set[str]()
    return (i for i in listed if before.isdisjoint(words(new[i])))


def new_imports(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """(line, name, module) of each name that lines import now and did not before, or from another
    module than before while others stay, see `ImportPattern`."""
    if not any(is_import(line.strip()) for line in new):
        return
    modules = {known.module for known in _imported(new)}
    moved = {name for name, module in gone_names(old, new) if module in modules}
    before = {name for line in old for name in words(line)} - moved
    for line in (line.strip() for line in new):
        if not is_import(line):
            continue
        known = imported_names(line)
        if known is not None:
            for name in known.names:
                if name not in before and len(name) > 1:
                    yield known.of([name]), name, known.module
        elif line not in {other.strip() for other in old}:
            default = _DEFAULT.match(line)
            names = [default["name"]] if default else words(line)[-1:]
            if names and names[0] not in before:
                yield line, names[0], ""


def removed_imports(
    text: SearchedText, line: int, gone: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """(name, module) of each name that a change took out of an import. line: of the change in the
    text as it is now. gone: see `gone_names`."""
    for name, module in gone:
        if module:
            yield name, module
        elif (around := import_around(text, line) or import_around(text, line - 1)) is not None:
            yield name, around.module


def gone_names(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, module) of the names that old lines import, or may list, and new ones do not. Where
    other names came, or only the module changed, it is another change, and there are none. module:
    "" for a list over several lines."""
    if not any(is_import(line.strip()) or is_listed_name(line.strip()) for line in old):
        return
    now = {known.module: known.names for known in _imported(new)}
    listed = {name for line in new if is_listed_name(line.strip()) for name in words(line)}
    before = {name for line in old for name in words(line)}
    if not before.issuperset(listed.union(*now.values())):
        return
    for line in (line.strip() for line in old):
        known = imported_names(line)
        if known is not None and (known.module in now or not now):
            still = now.get(known.module, listed)
            yield from ((name, known.module) for name in known.names if name not in still)
        elif is_listed_name(line):
            yield from ((name, "") for name in words(line) if name not in listed)


def _imported(lines: Sequence[str]) -> list[ImportedNames]:
    found = (imported_names(line.strip()) for line in lines)
    return [known for known in found if known is not None]


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
        is_used = any(self._name in words(text.body(n)) for n in text.find(self._name))
        if not is_used or text.brings_in(self._name):
            return
        place = self._as_name(text) if self._module else None
        yield from [place] if place else self._as_line(text)

    def _as_name(self, text: SearchedText) -> FittingPlace | None:
        """One more name of an import from the same module."""
        for number in text.find(self._module):
            known = imported_names(text.body(number)) or import_around(text, number)
            if known is not None and known.module == self._module:
                line, n_old, new = with_name(text, known, number, self._name)
                return FittingPlace(line, n_old, new, self.makings[-1], n_left=1, n_right=1)
        return None

    def _as_line(self, text: SearchedText) -> Iterator[FittingPlace]:
        """A line among those that begin alike, where it is between two of them in order."""
        head = '"' if self._line[0] == '"' else self._line.split(maxsplit=1)[0]
        alike = [n for n in text.imports if text.body(n).startswith(head)]
        if not alike:
            return
        shared, nearest = max((common_prefix(text.body(n), self._line), -n) for n in alike)
        run = _run([(n, _end(text, n)) for n in alike], -nearest)
        at = place_among([text.body(first) for first, _ in run], self._line)
        at = _end(text, -nearest) if at is None else [*(first for first, _ in run), run[-1][1]][at]
        new = indentation(text.lines[-nearest]) + self._line
        n_left = min(MAX_CONTEXT, len(words(self._line[:shared])))
        yield FittingPlace(at, 0, (new,), self.makings[-1], n_left=n_left)


class RemovedImportPattern(Pattern):
    """A name that a file imports no more from a module: in other files that do not use it, or in
    all where it comes from another module now, whatever names stand beside it."""

    kind: ClassVar[str] = "delete"

    def __init__(self, name: str, module: str, known: Collection[str]) -> None:
        """known: texts that are looked for by patterns of tokens."""
        super().__init__(name, "", name)
        self._name, self._module, self._known = name, module, known

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        if home is None or text.suffix != home.suffix or text.path == home.path:
            return
        for number in text.find(self._module):
            known = imported_names(text.body(number)) or import_around(text, number)
            if known is None or known.module != self._module or self._name not in known.names:
                continue
            line = number
            if known.lines is not None:
                line = known.lines[0] + 1 + known.names.index(self._name)
            is_wanted = home.brings_in(self._name) or not self._is_used(text, line)
            # What is on the line as it was where it went is found by its tokens.
            if is_wanted and not any(removed in text.body(line) for removed in self._known):
                first, n_old, new = without_name(text, known, line, self._name)
                yield FittingPlace(first, n_old, new, self.makings[-1], n_left=1, n_right=1)
            return

    def _is_used(self, text: SearchedText, line: int) -> bool:
        """True if another line holds the name."""
        return any(
            n != line and holds_name(text.body(n), self._name) for n in text.find(self._name)
        )


def _end(text: SearchedText, line: int) -> int:
    """The line after an import."""
    end = line + 1
    if text.body(line)[-1:] in ("(", "{"):
        while end - line < MAX_IMPORTED and text.body(end)[:1] not in (")", "}", ""):
            end += 1
        end += 1
    return min(end, len(text.lines))


def _run(spans: Sequence[tuple[int, int]], line: int) -> list[tuple[int, int]]:
    """The imports, (first line, line after), around one that follow one another without a gap."""
    run: list[tuple[int, int]] = []
    for span in spans:
        if run and run[-1][1] != span[0]:
            if run[-1][0] >= line:
                break
            run = []
        run.append(span)
    return run
