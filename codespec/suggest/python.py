"""Python's own parser as a second judge of Python.

The grammar of the syntax tree is patient: it takes bodies without a statement, indentation that
fits nowhere, positional arguments after keywords, statements of Python 2. So Python is asked as
well, about the statements around a suggestion only: that costs the same in a long file.

The text is hostile until shown otherwise. Python's parser nests with what it reads, so what may
nest deeply is not judged: within the bounds it takes less than 512 KiB of stack (Python 3.13; less
with those before).
"""

from __future__ import annotations

import ast
import sys
import warnings
from _symtable import symtable
from collections.abc import Callable, Iterator

import numpy as np
from tree_sitter import Node

from codespec.suggest.candidate import Candidate
from codespec.suggest.place import Place, indentation, lead_of
from codespec.suggest.syntax_check import probes
from codespec.suggest.trials import Trials, once

MAX_BYTES = 16_000
MAX_STATEMENT_BYTES = 2_000
"""Most bytes of one statement without a body, from line end to line end."""
MAX_BRACKETS = 20
_MAX_BRANCHES = 100  # elif nests, though it does not look so
_CASES = "match_statement"  # holds its cases in a block, which are no statements
_MAX_LINES = 50
_VERSION = 13
"""The newest grammar that counts. In 3.14's, Python 2's name for an error, `except A, e:`, is a
second kind of error."""
_KNOWS_NO_NEWER = sys.version_info[:2] <= (3, _VERSION)

_DEPTH = np.zeros(256, np.int32)
_DEPTH[list(b"([{")] = 1
_DEPTH[list(b")]}")] = -1


def is_python(place: Place, parsed: Trials) -> Callable[[Candidate], bool]:
    """A judge of variants of the suggestion for one place, which follow the grammar. Python's
    refusal does not count where it would refuse anything there: what stands around is of another
    version."""
    at, first, last = place.at, place.line_start, place.line_end
    lead = lead_of(place.line_prefix)

    def judged(start: int, end: int, text: str) -> bool | None:
        new = text.encode()
        root = parsed.with_change(start, end, new)
        return accepts(root, parsed.changed, start, start + len(new)) if root is not None else None

    @once
    def is_python_without() -> bool:
        refused = False
        for probe in probes(place):
            verdict = judged(at, at, probe)
            if verdict:
                return True
            refused = refused or verdict is False
        if refused:
            return False
        # Nothing simple goes on from what the line begins with: without the line, then.
        return any(judged(first, last, text) for text in ("", f"{lead}pass"))

    def accepted(variant: Candidate) -> bool:
        text = variant.text
        verdict = judged(at, at, text)
        if verdict or not lacks_body(variant):
            return verdict is not False or not is_python_without()
        if "\n" in text.strip() or not place.line_prefix.strip():
            return False
        # The user began the line, and will go on with what it opens.
        bodies = (f"\n{lead} pass", f"\n{lead} pass\n{lead}finally:\n{lead} pass")
        found = [judged(at, at, text + body) for body in bodies]
        return False not in found or True in found or not is_python_without()

    return accepted


def lacks_body(variant: Candidate) -> bool:
    """True if the last line opens a block that has no line; Python's grammar here is more patient
    than Python."""
    if variant.place.rest.strip():
        return False
    last = variant.became(variant.text.rstrip()).line.last_line
    if last.is_open or not last.code.rstrip().endswith(":"):
        return False
    return indentation(variant.place.line_below) <= indentation(last.text)


def accepts(root: Node, text: bytes, start: int, end: int) -> bool | None:
    """True if Python takes the statements that reach into the lines of bytes start..end - 1, the
    lines above and below included. None: not judged, as they are too long, nested too deeply, or
    hold errors by the tree already.

    root: of the tree of `text`.
    """
    begin = text.rfind(b"\n", 0, start) + 1
    end = (text.find(b"\n", end) + 1 or len(text) + 1) - 1
    # With the lines around, which may hold the body's head or what comes out of it; where the
    # statements in them are too long, without.
    for first, last in ((_line_above(text, begin), _line_below(text, end)), (begin, end)):
        found = _judged(root, text, first, last)
        if found is not None:
            return found
    return None


def _judged(root: Node, text: bytes, first: int, last: int) -> bool | None:
    block = _block_over(root, first, last)
    children = list(_children(block, first, last))
    if not children or any(child.has_error for child in children):
        return None
    begin = text.rfind(b"\n", 0, children[0].start_byte) + 1
    statements = text[begin : max(children[-1].end_byte, last)]
    if block.type == "block" and statements[:1] in (b" ", b"\t"):
        statements = b"if 1:\n" + statements
    return _is_read(statements) if _is_tame(statements) else None


def _line_above(text: bytes, at: int) -> int:
    """Start of the last line before `at` that has code."""
    for _ in range(_MAX_LINES):
        begin = text.rfind(b"\n", 0, max(0, at - 1)) + 1
        line = text[begin:at]
        if begin == 0 or _is_code(line):
            return begin + len(line) - len(line.lstrip())
        at = begin
    return at


def _line_below(text: bytes, at: int) -> int:
    """End of the first line after `at` that has code."""
    for _ in range(_MAX_LINES):
        end = (text.find(b"\n", at + 1) + 1 or len(text) + 1) - 1
        if end == len(text) or _is_code(text[at:end]):
            return end
        at = end
    return at


def _is_code(line: bytes) -> bool:
    line = line.strip()
    return bool(line) and not line.startswith(b"#")


def _block_over(root: Node, first: int, last: int) -> Node:
    """The innermost sequence of statements over the bytes."""
    # From the top: a node does not know its parent, which is looked for from the top each time.
    cursor, found, above = root.walk(), root, ""
    while (node := cursor.node) is not None and node.start_byte <= first and last <= node.end_byte:
        if node.type == "block" and above != _CASES:
            found = node
        above = node.type
        if cursor.goto_first_child_for_byte(first) is None:
            break
    return found


def _children(node: Node, first: int, last: int) -> Iterator[Node]:
    """Children that reach into the bytes."""
    cursor = node.walk()
    more = cursor.goto_first_child_for_byte(first) is not None
    while more and cursor.node is not None and cursor.node.start_byte <= last:
        yield cursor.node
        more = cursor.goto_next_sibling()


def _is_tame(text: bytes) -> bool:
    if len(text) > MAX_BYTES or text.count(b"elif") > _MAX_BRANCHES:
        return False
    brackets = max(sum(map(text.count, b"([{")), sum(map(text.count, b")]}")))
    if brackets <= MAX_BRACKETS and len(text) <= MAX_STATEMENT_BYTES:
        return True  # as most are, told without numpy
    raw = np.frombuffer(text, np.uint8)
    depths = np.cumsum(_DEPTH[raw])
    if len(raw) and int(depths.max() - min(0, int(depths.min()))) > MAX_BRACKETS:
        return False
    ends = np.flatnonzero((raw == ord("\n")) & (depths <= 0))
    longest = np.diff(ends, prepend=-1, append=len(raw))
    return int(longest.max()) <= MAX_STATEMENT_BYTES


def _is_read(text: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a string is no fault of the suggestion
            if _KNOWS_NO_NEWER and _has_symbols(text):
                return True
            flags = ast.PyCF_ONLY_AST
            compile(text, "", "exec", flags, dont_inherit=True, _feature_version=_VERSION)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _has_symbols(text: bytes) -> bool:
    """True if Python reads a text and finds the scopes of its names, which takes half the time of a
    tree. Where it does not, that may be the scopes' fault."""
    try:
        symtable(text, "", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
