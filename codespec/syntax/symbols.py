"""Definitions in a file: what its names stand for, from the same parse that selects its text."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice

import msgspec
from tree_sitter import Node, Query, QueryCursor

from codespec.languages.base import Grammar
from codespec.syntax.parse import facts_of, grammar

MAX_PER_FILE = 4000
MAX_SIGNATURE_CHARS = 300

_CLASS_LIKE = re.compile(r"class|impl|trait|interface|struct|enum")
_BEFORE_BODY = re.compile(r" ?(?:\{|:|=>|=|(?<=\) )end)$")
_CONSTANT_NAME = re.compile(r"[A-Z][A-Z0-9_]+")


class Symbol(msgspec.Struct, frozen=True, array_like=True):
    """kind: function, class, method, struct, enum, trait, interface, type or constant.
    signature: the definition up to its body, on one line. Lines: from 1, the last one included."""

    name: str
    kind: str
    signature: str
    first_line: int
    last_line: int


@cache
def _query(language: str) -> Query:
    return Query(grammar(language), facts_of(language).definitions)


def find_symbols(language: str, root: Node, text: bytes) -> tuple[Symbol, ...]:
    """Definitions in a parsed file, in the order of their places. Raises: ValueError for a language
    without a grammar."""
    facts = facts_of(language)
    # The cursor bounds what it holds at a time, whatever the file.
    cursor = QueryCursor(_query(language), match_limit=4096)
    cursor.set_max_start_depth(facts.depth)
    matches = cursor.matches(root)
    best: dict[int, tuple[int, str, Node, Node]] = {}
    for pattern, captures in matches:
        name = captures.pop("name")[0]
        kind, nodes = next(iter(captures.items()))
        # The first pattern that fits says the kind.
        if pattern < best.get(name.start_byte, (pattern + 1,))[0]:
            best[name.start_byte] = (pattern, kind, name, nodes[0])
    in_order = (best[at] for at in sorted(best))
    found = (_symbol(facts, kind, name, node, text) for _, kind, name, node in in_order)
    return tuple(islice(filter(None, found), MAX_PER_FILE))


def _symbol(facts: Grammar, kind: str, name_node: Node, node: Node, text: bytes) -> Symbol | None:
    name = text[name_node.start_byte : name_node.end_byte].decode()
    if kind == "constant" and facts.constants_in_capitals and not _CONSTANT_NAME.fullmatch(name):
        return None
    if kind == "function" and _is_member(node):
        kind = "method"
    return Symbol(
        name, kind, _signature(node, text), node.start_point.row + 1, node.end_point.row + 1
    )


def _is_member(node: Node) -> bool:
    """True if a function stands directly in the body of a type."""
    above = node.parent
    if above is not None and above.type == "decorated_definition":
        above = above.parent
    owner = above.parent if above is not None else None
    return owner is not None and _CLASS_LIKE.search(owner.type) is not None


def _signature(node: Node, text: bytes) -> str:
    body = node.child_by_field_name("body")
    if body is None:
        value = node.child_by_field_name("value")
        body = value.child_by_field_name("body") if value is not None else None
    end = body.start_byte if body is not None else node.end_byte
    head = text[node.start_byte : min(end, node.start_byte + 4 * MAX_SIGNATURE_CHARS)]
    words = " ".join(head.decode("utf-8", "ignore").split())
    return _BEFORE_BODY.sub("", words)[:MAX_SIGNATURE_CHARS]
