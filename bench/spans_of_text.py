"""Statements in files without a grammar: blocks that are told by their lines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from tree_sitter import Node

from codespec.suggest.place import indentation

MAX_STATEMENT_LINES = 12
# Lines that end a block without a grammar, those that go on with one, and what follows one.
_CLOSES = re.compile(r"(?:end|fi|done|esac)\b|[)\]}]|</|/>|\{/|(?:\{%|<%)-? *end")
_BRANCHES = re.compile(
    r"(?:then|do|else|elif|rescue|catch|after)\b|>$|\{:|\{%-? *el|[)\]}].*[(\[{]$"
    r"|(?:end|done|fi).* do$"
)
_FOLLOWS = re.compile(r"\|>|\.|\|\||&&|:?else|catch\b|\{:|v-else")


def blocks(_: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """Lines that are indented more than the one above them, from that one to the one that closes
    them."""
    lines = [line.decode() for line in raw.split(b"\n")]
    starts = [0, *itertools.accumulate(len(line.encode()) + 1 for line in lines)]
    for first, head in enumerate(lines):
        is_inside = _CLOSES.match(head.strip()) or _BRANCHES.match(head.strip())
        last = first if is_inside or not head.strip() else _last_of_block(lines, first)
        if last > first:
            lead = len(head) - len(head.lstrip())
            yield starts[first] + lead, starts[last] + len(lines[last].rstrip().encode())


def _last_of_block(lines: list[str], first: int) -> int:
    """The line that closes the block of the first one, `first` where there is none."""
    column, n = indentation(lines[first]), 0
    for at in range(first + 1, min(first + MAX_STATEMENT_LINES, len(lines))):
        line = lines[at].strip()
        if not line or indentation(lines[at]) > column:
            n += bool(line)
            continue
        if not n or indentation(lines[at]) < column:
            break
        if _BRANCHES.match(line):
            continue
        following = next((s.strip() for s in lines[at + 1 :] if s.strip()), "")
        return at if _CLOSES.match(line) and not _FOLLOWS.match(following) else first
    return first


def rests_of_blocks(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """Blocks from the middle word of their first line on."""
    yield from rests_of(blocks(nodes, raw), raw)


def under_blocks(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """Blocks from the end of their first line on."""
    yield from under_of(blocks(nodes, raw), raw)


def rests_of(whole: Iterator[tuple[int, int]], raw: bytes) -> Iterator[tuple[int, int]]:
    """The spans from the middle word of their first line on."""
    for start, end in whole:
        at = middle(raw[start:end].split(b"\n", 1)[0])
        if at is not None:
            yield start + at, end


def under_of(whole: Iterator[tuple[int, int]], raw: bytes) -> Iterator[tuple[int, int]]:
    """The spans from the end of their first line on, those of one line left out."""
    for start, end in whole:
        at = raw.find(b"\n", start, end)
        if at >= 0:
            yield at, end


def middle(line: bytes) -> int | None:
    """Offset at which the middle one of its words begins, by a fixed rule, and never the first;
    None for a line of fewer than four."""
    words = [m.start() for m in re.finditer(rb"\w+|[^\w\s]+", line)]
    return words[len(words) // 2] if len(words) >= 4 else None


def words_of_lines(_: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """From the middle of a line's words to the last one that is followed by others, or by signs."""
    for start, end in whole_lines([], raw):
        words = list(re.finditer(rb"\w+", raw[start : end - 1]))
        if len(words) >= 2:
            yield start + words[len(words) // 2].start(), start + words[-1].end()


def whole_lines(_: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """Lines without their indentation; blank ones are left out."""
    at = 0
    for line in raw.split(b"\n"):
        if line.strip():
            yield at + len(line) - len(line.lstrip()), at + len(line.rstrip())
        at += len(line) + 1
