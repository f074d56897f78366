"""The changes of a session taken together: the patterns that they make, how far they repeat one
another, and the lines that they cover."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeAlias

from codespec.documents.edit_history import LineChange
from codespec.edits.analogy import difference
from codespec.edits.analogy_pattern import AnalogyPattern, BlockAnalogyPattern
from codespec.edits.block_pattern import AddedLines, BlockPattern
from codespec.edits.import_lists import renamed_in_place
from codespec.edits.import_pattern import (
    ImportPattern,
    RemovedImportPattern,
    gone_names,
    listed_imports,
    listed_names,
    new_imports,
    removed_imports,
)
from codespec.edits.line_tokens import (
    common_indentation,
    dedented,
    has_word,
    indentation,
    signs,
)
from codespec.edits.pattern import Making, Pattern
from codespec.edits.searched_text import SearchedText
from codespec.edits.substitutions import (
    Substitution,
    aligned,
    number_substitution,
    substitution,
)
from codespec.edits.template_pattern import LEAST_SIGNS, TemplatePattern
from codespec.edits.token_pattern import token_pattern

MAX_BLOCK = 12
"""Old lines of a block that is looked for elsewhere."""
_MIN_BLOCK_CHARS = 6
_MIN_ANCHOR_CHARS = 4
_MAX_IMPORTS = 6
_MAX_ANALOGY_LINES = 8
_MAX_ANALOGY_CHARS = 600
_MAX_ANALOGY_LINE = 180

Key: TypeAlias = Hashable
_Sides: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _ChangedLine:
    """One line of a change. offset: from its first new line. substitution: that of the number where
    there is no other one. number: see `number_substitution`. analogy: see `difference`."""

    offset: int
    old: str
    new: str
    substitution: Substitution
    number: Substitution | None
    analogy: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The sense of a change by itself, wherever it is made. said: keys that it shares with changes
    that repeat it. block, analogy: keys of its block as a whole; None where it makes none. imports:
    see `new_imports`. listed: see `listed_names`. gone: see `gone_names`."""

    lines: tuple[_ChangedLine, ...]
    said: frozenset[Key]
    block: Key | None
    analogy: Key | None
    imports: tuple[tuple[str, str, str], ...]
    listed: tuple[int, ...]
    gone: tuple[tuple[str, str], ...]


class ChangeReader:
    """Reads changes, each once, as long as they are kept."""

    def __init__(self) -> None:
        self._known: dict[_Sides, _Reading] = {}

    def of(self, changes: Sequence[LineChange]) -> list[_Reading]:
        """One for each change."""
        known: dict[_Sides, _Reading] = {}
        for change in changes:
            sides = change.old, change.new
            known[sides] = self._known.get(sides) or _reading(*sides)
        self._known = known
        return [known[change.old, change.new] for change in changes]


class EditSession:
    """The changes up to now, oldest first, none of them empty.

    patterns: by key, with their makings, oldest first.
    repeats: for each change, True if it repeats an earlier one.
    paths: documents with changes.
    """

    def __init__(
        self, changes: Sequence[LineChange], reader: ChangeReader, texts: Mapping[str, SearchedText]
    ) -> None:
        self.changes = changes
        self.patterns: dict[Key, Pattern] = {}
        self.repeats: list[bool] = []
        self.paths = {change.path for change in changes}
        self._covered: dict[str, _CoveredLines] = defaultdict(_CoveredLines)
        said: set[Key] = set()
        for change, reading in zip(changes, reader.of(changes), strict=True):
            self._covered[change.path].add(change)
            self.repeats.append(not said.isdisjoint(reading.said))
            said |= reading.said
            for key, pattern, making in _taught(change, reading, texts.get(change.path)):
                self.patterns.setdefault(key, pattern).makings.append(making)

    def covers(self, path: str, line: int, n_lines: int) -> bool:
        """True if a change has made, or meets, these lines of a document."""
        covered = self._covered.get(path)
        return covered is not None and covered.meets(line, n_lines)


class _CoveredLines:
    """Lines of a document that changes have made."""

    def __init__(self) -> None:
        self._made: set[int] = set()
        self._touched: set[int] = set()  # lines before which an insertion meets a change
        self._gone: set[int] = set()  # lines before which others were deleted

    def add(self, change: LineChange) -> None:
        end = change.line + len(change.new)
        self._made.update(range(change.line, end))
        self._touched.update(range(change.line, end + 1))
        if not change.new:
            self._gone.add(change.line)

    def meets(self, line: int, n_lines: int) -> bool:
        if not n_lines:
            return line in self._touched
        if n_lines == 1:
            return line in self._made
        lines = range(line, line + n_lines)
        return not self._made.isdisjoint(lines) or not self._gone.isdisjoint(lines[1:])


def _reading(old: tuple[str, ...], new: tuple[str, ...]) -> _Reading:
    lines: list[_ChangedLine] = []
    for i, j in aligned(old, new):
        before, after = old[i].strip(), new[j].strip()
        number = number_substitution(before, after)
        made = substitution(before, renamed_in_place(before, after) or after) or number
        if made is not None:
            is_short = len(before) < _MAX_ANALOGY_LINE and len(after) < _MAX_ANALOGY_LINE
            analogy = difference(before, after) if is_short else ()
            lines.append(_ChangedLine(j, before, after, made, number, analogy))
    said: set[Key] = {
        (line.substitution.removed, line.substitution.added)
        for line in lines
        if has_word(line.substitution.removed + line.substitution.added)
    }
    is_one_line = len(old) == len(new) == 1
    block = analogy = None
    if not is_one_line and len(old) <= MAX_BLOCK and has_word("".join(old + new)):
        sides = dedented(old), dedented(new)
        said.add(sides)
        n_chars = sum(len(line.strip()) for line in old)
        if old and has_word("".join(old)) and n_chars >= _MIN_BLOCK_CHARS:
            block = sides
            if len(old) <= _MAX_ANALOGY_LINES and n_chars < _MAX_ANALOGY_CHARS:
                analogy = difference("\n".join(sides[0]), "\n".join(sides[1])) or None
    imports = tuple(islice(new_imports(old, new), _MAX_IMPORTS))
    listed = tuple(listed_names(old, new))
    gone = tuple(islice(gone_names(old, new), _MAX_IMPORTS))
    return _Reading(tuple(lines), frozenset(said), block, analogy, imports, listed, gone)


def _taught(
    change: LineChange, reading: _Reading, home: SearchedText | None
) -> Iterator[tuple[Key, Pattern, Making]]:
    """(key, pattern, making) of all that a change makes."""
    for line in reading.lines:
        made = line.substitution
        making = Making(change, change.line + line.offset, line.old, line.new, made)
        yield (made.found, made.put, made.at_start, made.at_end), token_pattern(made), making
        if line.number is made:
            continue
        if line.number is not None and line.number != made:
            of_number = replace(making, substitution=line.number)
            key = line.number.found, line.number.put, False, False
            yield key, token_pattern(line.number), of_number
        if len(signs(line.old)) >= LEAST_SIGNS:
            yield ("template", *TemplatePattern.key(making)), TemplatePattern(making), making
            if line.analogy:
                yield ("analogy", line.analogy), AnalogyPattern(making), making
    making = Making(change, change.line)
    for line, name, module in _imports(change, reading, home):
        key = ("import", module, name if module else line)
        yield key, ImportPattern(line, name, module), making
    if home is not None and reading.gone:
        yield from _removed_imports(change, reading, home, making)
    if reading.block is not None:
        yield ("block", reading.block), BlockPattern(change.old, change.new), making
    if reading.analogy is not None:
        pattern = BlockAnalogyPattern(change.old, change.new)
        yield ("block_analogy", reading.analogy), pattern, making
    if not change.old and home is not None and has_word("".join(change.new)):
        yield from _added(change, home, making)


def _imports(
    change: LineChange, reading: _Reading, home: SearchedText | None
) -> list[tuple[str, str, str]]:
    """See `new_imports`, with those of lists over several lines."""
    if home is None or not reading.listed:
        return [*reading.imports]
    numbers = [change.line + offset for offset in reading.listed]
    listed = listed_imports(home, numbers)
    return [*islice(chain(reading.imports, listed), _MAX_IMPORTS)]


def _removed_imports(
    change: LineChange, reading: _Reading, home: SearchedText, making: Making
) -> Iterator[tuple[Key, Pattern, Making]]:
    """Patterns of names that are imported no more."""
    known = [line.substitution.found for line in reading.lines if not line.substitution.added]
    for name, module in removed_imports(home, change.line, reading.gone):
        yield ("no import", name, module), RemovedImportPattern(name, module, known), making


def _added(
    change: LineChange, home: SearchedText, making: Making
) -> Iterator[tuple[Key, Pattern, Making]]:
    """Patterns of added lines, beside the line above and the line below."""
    for is_above, number in ((True, change.line - 1), (False, change.line + len(change.new))):
        anchor = home.body(number)
        if len(anchor) >= _MIN_ANCHOR_CHARS and has_word(anchor):
            line = home.lines[number]
            n_deeper = common_indentation(change.new) - len(indentation(line))
            key = ("add_lines", is_above, anchor, dedented(change.new), n_deeper)
            yield key, AddedLines(line, is_above, change.new), making
