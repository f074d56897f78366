"""A text in which places are looked for, with what is known of its lines."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Hashable
from itertools import accumulate, compress, count, islice
from operator import ne
from pathlib import PurePath
from typing import Any, TypeVar, cast

from codespec.edits.analogy import Analogies
from codespec.edits.line_table import LineTable
from codespec.edits.line_tokens import (
    begins_imports,
    defined_name,
    holds_name,
    is_import,
    is_listed_name,
)

MAX_TEXT = 1 << 20
"""Characters. In a longer text nothing is looked for."""
MAX_LINE = 400
"""Characters. A longer line is no place for an edit."""
_MAX_ANSWERS = 400
MAX_IMPORTED = 60
"""Lines of a list of imported names."""
MAX_FOUND = 150
"""Lines that one search returns."""
_MAX_CHANGED = 64
"""Lines that change from one version to the next, for what is known of lines to be kept."""
_length_with_end = (1).__add__
_T = TypeVar("_T")


class SearchedText:
    """One version of a text. Costs little until something is asked of it.

    path: absolute. is_open: an editor has it. lines: without line ends.
    """

    def __init__(
        self,
        path: str,
        text: str,
        is_open: bool,
        analogies: Analogies,
        before: SearchedText | None = None,
    ) -> None:
        """analogies: those of all texts. before: an earlier version, whose lines need not be read
        again."""
        self.analogies = analogies
        self.path = path
        self.is_open = is_open
        self.suffix = PurePath(path).suffix
        self.text = text
        self.lines = text.split("\n") if len(text) <= MAX_TEXT else []
        self._starts: list[int] | None = None
        self._table = before._table if before is not None else LineTable()
        self._changed = None if before is None else self._changed_lines(before.lines)
        self._found_before: dict[str, list[int]] = {}
        self._numbers: dict[str, list[int]] | None = None
        if before is not None and self._changed is not None:
            self._found_before = before._found
            if before._numbers is not None:
                self._numbers = self._changed_numbers(before.lines, before._numbers, self._changed)
        self._imports: list[int] | None = None
        self._alike: dict[str, list[int]] = {}
        self._found: dict[str, list[int]] = {}
        self._defines: dict[str, bool] = {}
        self._brings_in: dict[tuple[str, bool], bool] = {}
        self._answers: dict[Hashable, Any] = {}

    def find(self, needle: str) -> list[int]:
        """Numbers of the lines that hold a text without line ends, at most `MAX_FOUND`."""
        known = self._found.get(needle)
        if known is None:
            known = self._found_again(needle)
            known = self._found[needle] = self._find(needle) if known is None else known
        return known

    def _found_again(self, needle: str) -> list[int] | None:
        """The answer of `find`, by that of the version before; None where it tells too little."""
        before = self._found_before.get(needle)
        if before is None or len(before) >= MAX_FOUND or self._changed is None:
            return None
        changed, lines = self._changed, self.lines
        found = [number for number in before if number not in changed]
        found += (i for i in changed if needle in lines[i] and len(lines[i]) <= MAX_LINE)
        found.sort()
        return found[:MAX_FOUND]

    def _find(self, needle: str) -> list[int]:
        found: list[int] = []
        at = self.text.find(needle) if self.lines else -1
        if at >= 0 and self._starts is None:
            self._starts = list(accumulate(map(_length_with_end, map(len, self.lines)), initial=0))
        while at >= 0 and len(found) < MAX_FOUND:
            assert self._starts is not None
            line = bisect_right(self._starts, at) - 1
            if len(self.lines[line]) <= MAX_LINE:
                found.append(line)
            at = self.text.find(needle, self._starts[line + 1])
        return found

    def found_once(self, question: Hashable, find: Callable[[], _T]) -> _T:
        """The answer of `find` to a question about this version of the text, found once."""
        known = self._answers.get(question)
        if known is None:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            known = self._answers[question] = find()
        return cast(_T, known)

    def body(self, line: int) -> str:
        """A line without the white space around it; "" beyond the ends of the text, and for one
        that is too long."""
        found = self.lines[line] if 0 <= line < len(self.lines) else ""
        return found.strip() if len(found) <= MAX_LINE else ""

    def of_shape(self, line_shape: str) -> list[int]:
        """Numbers of the lines of one shape (`line_tokens.shape`)."""
        return self._numbers_of(lambda table: table.of_shape(line_shape))

    def alike(self, body: str) -> list[int]:
        """Numbers of the lines that share most of their tokens with this one, likest first."""
        known = self._alike.get(body)
        if known is None:
            known = self._alike[body] = self._numbers_of(lambda table: table.alike(body))
        return known

    def defines(self, name: str) -> bool:
        """True if a line defines a name."""
        known = self._defines.get(name)
        if known is None:
            numbers = self.find(name)
            known = any(defined_name(self.body(number)) == name for number in numbers)
            self._defines[name] = known
        return known

    def brings_in(self, name: str, at_top: bool = False) -> bool:
        """True if the text imports a name, by itself or in a list of several lines. at_top: not in
        a function or an inner module, where it may be the text's own name."""
        asked = name, at_top
        known = self._brings_in.get(asked)
        if known is None:
            numbers = self.find(name)
            known = any(
                holds_name(self.body(number), name) and self._is_in_import(number, at_top)
                for number in numbers
            )
            self._brings_in[asked] = known
        return known

    def _is_in_import(self, line: int, at_top: bool) -> bool:
        first = max(0, line - MAX_IMPORTED)
        while line > first and is_listed_name(self.body(line)):
            line -= 1
        is_inner = at_top and self.lines[line][:1].isspace()
        return not is_inner and begins_imports(self.body(line))

    def _numbers_of(self, lines: Callable[[LineTable], list[str]]) -> list[int]:
        """Numbers of the lines that are found in the table."""
        if self._numbers is None:
            self._numbers = {}
            for i, line in enumerate(self.lines):
                _add(self._numbers, line, i)
            self._table.add(self._numbers, len(self.lines))
        numbers = self._numbers
        found = (number for line in lines(self._table) for number in numbers.get(line, ()))
        return list(islice(found, MAX_FOUND))

    def _changed_lines(self, old: list[str]) -> list[int] | None:
        """Numbers of the lines that are others in an earlier version; None where lines moved, or
        many changed."""
        new = self.lines
        if len(old) != len(new):
            return None
        changed = list(compress(count(), map(ne, old, new)))
        return changed if len(changed) <= _MAX_CHANGED else None

    def _changed_numbers(
        self, old: list[str], numbers: dict[str, list[int]], changed: list[int]
    ) -> dict[str, list[int]]:
        """The numbers of an earlier version's lines, which nobody asks for any more, made those of
        this one. changed: see `_changed_lines`."""
        new = self.lines
        for i in changed:
            body = old[i].strip()
            known = numbers.get(body, [])
            if i in known:
                known.remove(i)
                if not known:
                    del numbers[body]
        for i in changed:
            _add(numbers, new[i], i)
        fresh = [body for i in changed if (body := new[i].strip()) in numbers]
        self._table.add(numbers if self._table.is_full(len(new)) else fresh, len(new))
        return numbers

    @property
    def imports(self) -> list[int]:
        """Numbers of the lines that import something."""
        if self._imports is None:
            self._imports = [
                i
                for i, line in enumerate(self.lines)
                if len(line) <= MAX_LINE and is_import(line.strip())
            ]
        return self._imports


def _is_numbered(line: str) -> bool:
    return 4 < len(line) <= MAX_LINE // 2


def _add(numbers: dict[str, list[int]], line: str, number: int) -> None:
    if _is_numbered(line):
        insort(numbers.setdefault(line.strip(), []), number)


class SearchedTexts:
    """Texts by path, kept from one question to the next as long as they stay the same."""

    def __init__(self, n_most: int) -> None:
        self._n_most = n_most
        self._analogies = Analogies()
        self._texts: dict[str, SearchedText] = {}

    def get(self, path: str, text: str, is_open: bool) -> SearchedText:
        """The text of a path, its most recently used version."""
        known = self._texts.pop(path, None)
        if known is None or known.text != text or known.is_open != is_open:
            known = SearchedText(path, text, is_open, self._analogies, known)
        self._texts[path] = known
        if len(self._texts) > self._n_most:
            del self._texts[next(iter(self._texts))]
        return known

    def keep(self, open_paths: set[str]) -> None:
        """Forget the texts of documents that were open and are not any more."""
        for path in [p for p, t in self._texts.items() if t.is_open and p not in open_paths]:
            del self._texts[path]
            self._analogies.clear()
