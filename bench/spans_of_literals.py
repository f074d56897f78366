"""Spans inside and right before strings and comments, and before closing brackets; and of lines
that their indentation alone puts together.

A grammar tells strings and comments where there is one. Elsewhere a comment begins with the sign
that begins most lines of the file, of those that begin comments anywhere, and a string stands
between two quotes of one line. No record of a language is asked: records change with the product,
and the places that it is measured at must not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from codespec.suggest.place import indentation

MAX_LINES, MAX_BYTES = 8, 200
_SIGNS = (b"#", b"//", b"--", b";", b"%", b'"', b"(*")
_QUOTED = re.compile(rb"\w{0,2}([\"'`])(?!\1)([^\n]+)\1")
_DOUBLE = re.compile(rb'"([^"\\\n]{2,})"')
_SINGLE = re.compile(rb"(?<![\w'\"\\])'([^'\"\\\n]{2,})'(?!\w)")
_END_OF_COMMENT = re.compile(rb"\s*(?:\*+/|\*\)|-->)?\s*\Z")
_CLOSERS = re.compile(rb"(?<=\w)[\"']?[)\]}]+[;,.]?[ \t]*$", re.MULTILINE)
_CLOSING = re.compile(rb"[)\]}]{2,}[;,.]?$|(?<=[ \t])[)\]}]+[;,.]?$", re.MULTILINE)
_WORD = re.compile(rb"\w+")
_ITEM = re.compile(r"(?:[-*] )")

Spans = Iterator[tuple[int, int]]


def in_strings(nodes: list[Node], raw: bytes) -> Spans:
    """Spans from the middle word of a string's content to the quote that closes it."""
    for _, start, end in _strings(nodes, raw):
        yield from _from_middle(raw, start, end)


def at_strings(nodes: list[Node], raw: bytes) -> Spans:
    """Spans from right before a string to the end of its line."""
    for start, _, _ in _strings(nodes, raw):
        yield from _of_one_line(raw, start, _line_end(raw, start))


def in_comments(nodes: list[Node], raw: bytes) -> Spans:
    """Spans from the middle word of a comment's first line to its end, or to what ends it."""
    for start, end in _comments(nodes, raw):
        yield from _from_middle(raw, start, end)


def at_comments(nodes: list[Node], raw: bytes) -> Spans:
    """Spans from right before a comment to the end of its line."""
    for start, _ in _comments(nodes, raw):
        yield from _of_one_line(raw, start, _line_end(raw, start))


def before_comments(nodes: list[Node], raw: bytes) -> Spans:
    """Spans from the middle word of a line of code to its end, with a comment behind it."""
    for start, _ in _comments(nodes, raw):
        begins = raw.rfind(b"\n", 0, start) + 1
        yield from _from_middle(raw, begins, begins + len(raw[begins:start].rstrip()))


def before_closers(_: list[Node], raw: bytes) -> Spans:
    """The last words of a line before brackets that end it, all of which were opened before the
    cursor: from the middle word on, or the next one where that is so."""
    for found in _CLOSERS.finditer(raw):
        begins, end = raw.rfind(b"\n", 0, found.start()) + 1, found.start()
        words = [word.start() for word in _WORD.finditer(raw, begins, end)]
        for start in words[max(1, len(words) // 2) :]:
            if not open_brackets(raw[start:end].decode(errors="replace")):
                yield from _of_one_line(raw, start, end)
                break


def closing(_: list[Node], raw: bytes) -> Spans:
    """Brackets that end a line, two or more of them, or all there is on it."""
    for found in _CLOSING.finditer(raw):
        yield found.start(), found.end()


def indented(_: list[Node], raw: bytes) -> Spans:
    """Two or more lines that are indented further than the one above them, up to the next one that
    is not."""
    lines, starts = _lines(raw)
    for head, line in enumerate(lines[:-1]):
        last = _last_further_in(lines, head)
        first = next((at for at in range(head + 1, last + 1) if lines[at].strip()), last)
        if line.strip() and first < last:
            lead = len(lines[first]) - len(lines[first].lstrip())
            yield starts[first] + lead, starts[last] + len(lines[last].rstrip().encode())


def items(_: list[Node], raw: bytes) -> Spans:
    """Items of lists, which begin with a dash or a star, of two or more lines."""
    lines, starts = _lines(raw)
    for at, line in enumerate(lines):
        last = _last_further_in(lines, at) if _ITEM.match(line.lstrip()) else at
        if last > at:
            lead = len(line) - len(line.lstrip())
            yield starts[at] + lead, starts[last] + len(lines[last].rstrip().encode())


def comments_in(nodes: list[Node], raw: bytes) -> list[int]:
    """The beginnings of comments, in order."""
    return [start for start, _ in _comments(nodes, raw)]


def open_brackets(text: str) -> dict[str, int]:
    """By pair of brackets, how many more are opened than closed in a text; those of equal numbers
    are left out."""
    found = {pair: text.count(pair[0]) - text.count(pair[1]) for pair in ("()", "[]", "{}")}
    return {pair: n for pair, n in found.items() if n}


def _last_further_in(lines: Sequence[str], head: int) -> int:
    """The last line of those below `head` that are further in; `head` where there are none, or too
    many."""
    column, last = indentation(lines[head]), head
    for at in range(head + 1, min(head + 1 + MAX_LINES, len(lines))):
        if not lines[at].strip():
            continue
        if indentation(lines[at]) <= column:
            return last
        last = at
    return last if head + 1 + MAX_LINES >= len(lines) else head


def _lines(raw: bytes) -> tuple[list[str], list[int]]:
    """(the lines, where each begins)"""
    lines = [line.decode() for line in raw.split(b"\n")]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()) + 1)
    return lines, starts


def _from_middle(raw: bytes, start: int, end: int) -> Spans:
    words = [found.start() for found in _WORD.finditer(raw, start, end)]
    if len(words) >= 2:
        yield from _of_one_line(raw, words[len(words) // 2], end)


def _of_one_line(raw: bytes, start: int, end: int) -> Spans:
    if 0 < end - start <= MAX_BYTES and b"\n" not in raw[start:end]:
        yield start, end


def _line_end(raw: bytes, at: int) -> int:
    """The end of the line's text."""
    end = raw.find(b"\n", at)
    return at + len(raw[at : end if end >= 0 else len(raw)].rstrip())


def _strings(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int, int]]:
    """(where it begins, where its content begins and ends), of strings of one line."""
    if nodes:
        for node in nodes:
            found = None
            if re.search("string|char", node.type):
                found = _QUOTED.fullmatch(raw, node.start_byte, node.end_byte)
            if found:
                yield found.start(), *found.span(2)
        return
    sign = _sign(raw)
    comments = dict(_comments(nodes, raw))
    at = 0
    for line in raw.split(b"\n"):
        ends = next((start for start in comments if at <= start <= at + len(line)), at + len(line))
        for pattern in (_SINGLE,) if sign == b'"' else (_DOUBLE, _SINGLE):
            if raw.count(b'"', at, ends) % 2 == 0:
                for found in pattern.finditer(raw, at, ends):
                    yield found.start(), *found.span(1)
        at += len(line) + 1


def _comments(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """Spans of the first line of each, up to the sign that ends it, if any."""
    if nodes:
        found = (node for node in nodes if "comment" in node.type)
        outer = (n for n in found if n.parent is None or "comment" not in n.parent.type)
        starts = sorted({node.start_byte for node in outer})
    else:
        starts = list(_comments_of_text(raw))
    for start in starts:
        end = _line_end(raw, start)
        closed = _END_OF_COMMENT.search(raw, start, end)
        yield start, closed.start() if closed else end


def _comments_of_text(raw: bytes) -> Iterator[int]:
    sign = _sign(raw)
    if not sign:
        return
    before = rb"^[ \t]*" if sign == b'"' else rb"(?:^|(?<=[ \t]))"
    pattern = re.compile(before + b"(" + re.escape(sign) + rb"+['|]?[ \t][^\n]*)", re.MULTILINE)
    for found in pattern.finditer(raw):
        start = found.start(1)
        begins = raw.rfind(b"\n", 0, start) + 1
        if not any(raw.count(quote, begins, start) % 2 for quote in (b'"', b"'")):
            yield start


def _sign(raw: bytes) -> bytes:
    """The sign that begins comments; b"" where fewer than two lines begin with one."""
    begins = [line.lstrip() for line in raw.split(b"\n")]
    counts = {
        sign: sum(bool(re.match(re.escape(sign) + rb"+['|]?[ \t]", line)) for line in begins)
        for sign in _SIGNS
    }
    best = max(counts, key=lambda sign: counts[sign])
    return best if counts[best] >= 2 else b""
