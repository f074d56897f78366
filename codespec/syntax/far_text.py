"""Text far after the cursor, without the statements in it that no verdict at the cursor needs."""

from __future__ import annotations

import re

from tree_sitter import Node

# Nodes whose children stand one below the other, and can do without the last of them.
_LISTS = re.compile(
    r"(?:^|_)(?:block|body|module|program|source_file|translation_unit|compilation_unit|chunk"
    r"|declaration_list|compound_statement|body_statement|statements)$"
)

_PAIRS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"/*", b"*/"))


def without_far(root: Node, text: bytes, limit: int) -> bytes:
    """text[limit:] without the statements that begin there, whole lines each, in the blocks that
    reach over `limit` and those that begin behind it."""
    cuts: list[tuple[int, int]] = []
    nodes = [root]
    while nodes:
        node = nodes.pop()
        is_list = _LISTS.search(node.type) is not None
        runs: list[list[Node]] = [[]]
        for n, child in enumerate(node.children):
            if n and is_list and child.start_byte >= limit:
                if text[child.start_byte : child.end_byte] == b"end":
                    runs.append([])  # one too many, which Ruby's grammar takes for a name
                elif child.is_named and not child.is_error:
                    runs[-1].append(child)
            elif child.end_byte > limit and (child.start_byte < limit or _LISTS.search(child.type)):
                nodes.append(child)
        for far in filter(None, runs):
            start = text.rfind(b"\n", 0, far[0].start_byte) + 1
            end = text.find(b"\n", far[-1].end_byte) + 1 or len(text)
            around = text[start : far[0].start_byte] + text[far[-1].end_byte : end]
            if start >= limit and not around.strip():
                cuts.append((start, end))
    kept: list[bytes] = []
    for start, end in sorted(cuts):
        kept.append(text[limit:start])
        limit = max(limit, end)
    return b"".join([*kept, text[limit:]])


def bracket_balance(text: bytes) -> list[int]:
    """The number of brackets and comments opened less those closed, for each kind; strings are
    taken for code."""
    return [text.count(opener) - text.count(closer) for opener, closer in _PAIRS]
