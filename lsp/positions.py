"""Columns of a line: Python counts characters, editors count UTF-8, UTF-16 or UTF-32 units.

Text is free of lone surrogates here, see `well_formed`. Lines end at \\n, \\r\\n and \\r only (not
at form feeds or U+2028, where `str.splitlines` splits, too).
Source: Language Server Protocol 3.18, "Position" and "Text Documents".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\n|\r")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A place in a document: line from 0, column in the editor's units."""

    line: int
    character: int


def to_index(line: str, character: int, encoding: Encoding) -> int:
    """Index in `line` of a column; a column within a character means its start, one after the
    end of the line the end."""
    character = max(0, character)
    if encoding == "utf-32" or line.isascii():
        return min(character, len(line))
    if encoding == "utf-8":
        return len(line.encode()[:character].decode(errors="ignore"))
    return len(line.encode("utf-16-le")[: 2 * character].decode("utf-16-le", "ignore"))


def to_character(line: str, index: int, encoding: Encoding) -> int:
    """Column of an index in `line`."""
    before = line[:index]
    if encoding == "utf-32" or before.isascii():
        return len(before)
    return len(before.encode()) if encoding == "utf-8" else len(before.encode("utf-16-le")) // 2


def split_lines(text: str) -> list[str]:
    """Lines with their ends; the last one has none, and may be empty. At least one."""
    if "\r" not in text:
        lines = [line + "\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return lines
    lines = _LINE.findall(text)
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines


def line_end_of(text: str) -> str:
    """The end of a text's first line, \\n where it has none."""
    found = _LINE_END.search(text)
    return found[0] if found is not None else "\n"


def without_end(line: str) -> str:
    """The line without its line end."""
    return line.rstrip("\r\n")


def well_formed(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which JSON can spell and UTF-8 cannot. U+FFFD is as
    wide as a lone surrogate in every encoding of positions."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
