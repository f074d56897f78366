"""Places of a tour: lines that a repository has more than once, and names that it uses again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codespec.config import IndexSettings
from codespec.documents.from_disk import read_document
from codespec.edit import Edit
from codespec.errors import CodespecError
from codespec.index.selection import why_not_by_name
from codespec.index.walk import scan
from codespec.languages.registry import TEXT, language_of
from codespec.rules.ignore import IgnoreRules

_MAX_FILES = 200
_FILE_BYTES = range(500, 60_000)
_MIN_LINE, _MAX_LINE = 24, 90  # characters without white space around them
_MIN_USES = 3
_CUT = re.compile(r"[(=,.:] ?|\b(?:return|import|if|for|in) ")
_DEFINITION = re.compile(r"^\s*(?:async )?(?:def|func|fn|function|fun|class) (\w{5,})\b", re.M)


@dataclass(frozen=True, slots=True)
class CutLine:
    """A place inside a line, whose rest is cut out. line, column: from 1."""

    path: Path
    line: int
    column: int
    prefix: str
    rest: str
    suffix: str


@dataclass(frozen=True, slots=True)
class RenamedDefinition:
    """A file before and after the name of one definition in it was changed, and nothing else."""

    path: Path
    name: str
    new_name: str
    before: str
    after: str
    offset: int  # of the end of the new name in `after`
    n_uses: int


def documents(root: Path, settings: IndexSettings) -> list[tuple[Path, str]]:
    """Files of code, as an index would take them, with their texts. At most 200."""
    rules = IgnoreRules(str(root), exclude=settings.exclude)
    found: list[tuple[Path, str]] = []
    for candidate in scan(rules, settings.max_file_bytes).files:
        path = root / candidate.path
        if language_of(candidate.path) == TEXT or why_not_by_name(candidate.path):
            continue
        try:
            if path.stat().st_size not in _FILE_BYTES:
                continue
            found.append((path, read_document(path)))
        except (CodespecError, OSError):
            continue
        if len(found) == _MAX_FILES:
            break
    return found


def cut_lines(texts: list[tuple[Path, str]]) -> Iterator[CutLine]:
    """Lines that stand more than once in these texts, the most frequent last, one a file at a time:
    with those that are everywhere, a suggestion would say little."""
    counts = Counter(
        line.strip() for _, text in texts for line in text.split("\n") if _is_of_length(line)
    )
    ranked = [
        sorted(
            (i for i, line in enumerate(lines) if counts[line.strip()] > 1 and _cut(line)),
            key=lambda i: counts[lines[i].strip()],
        )
        for _, text in texts
        for lines in [text.split("\n")]
    ]
    for nth in range(max(map(len, ranked), default=0)):
        for (path, text), numbers in zip(texts, ranked, strict=True):
            if nth < len(numbers):
                yield _cut_line(path, text, numbers[nth])


def _cut_line(path: Path, text: str, i: int) -> CutLine:
    lines = text.split("\n")
    cut = _cut(lines[i])
    at = sum(len(line) + 1 for line in lines[:i])
    end = at + len(lines[i])
    return CutLine(path, i + 1, cut + 1, text[: at + cut], text[at + cut : end], text[end:])


def _is_of_length(line: str) -> bool:
    return _MIN_LINE <= len(line.strip()) <= _MAX_LINE


def _cut(line: str) -> int:
    """Characters of the line to leave, 0 where it has no place to cut it at."""
    indent = len(line) - len(line.lstrip())
    ends = [m.end() for m in _CUT.finditer(line) if m.end() - indent >= 6]
    return next((end for end in ends if len(line.rstrip()) - end >= 8), 0)


def changed_lines(text: str, edit: Edit) -> tuple[list[str], list[str]]:
    """The whole lines that an edit of this text takes away, and those it puts in their place; none
    of them in both at either end. Either may be empty: lines may only be deleted, or inserted."""
    begin = text.rfind("\n", 0, edit.start) + 1
    end = text.find("\n", edit.end)
    end = len(text) if end < 0 else end
    old = text[begin:end].split("\n")
    new = (text[begin : edit.start] + edit.text + text[edit.end : end]).split("\n")
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return old, new


def renamed_definitions(texts: list[tuple[Path, str]]) -> Iterator[RenamedDefinition]:
    """Definitions whose names are used again in their file, those with most uses first."""
    found: list[tuple[int, Path, str, re.Match[str]]] = []
    for path, text in texts:
        words = Counter(re.findall(r"\w+", text))
        names = Counter(m[1] for m in _DEFINITION.finditer(text))
        for match in _DEFINITION.finditer(text):
            name = match[1]
            if words[name] < _MIN_USES or names[name] > 1:
                continue
            found.append((words[name] - 1, path, text, match))
    for n_uses, path, text, match in sorted(found, key=lambda each: -each[0]):
        name = match[1]
        new_name = f"{name}_again" if "_" in name or name.islower() else f"{name}Again"
        after = text[: match.start(1)] + new_name + text[match.end(1) :]
        end = match.start(1) + len(new_name)
        yield RenamedDefinition(path, name, new_name, text, after, end, n_uses)
