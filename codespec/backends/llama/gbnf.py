"""Cost check of a GBNF grammar before llama.cpp parses it.

llama.cpp parses brackets by recursion, expands repetitions, and follows every way to begin a rule
through the rules it begins with, the same one again for each way there. It misses left recursion
behind rules that are empty by way of others. So a short grammar can take unbounded time or memory,
or crash the process. Here each rule is counted once.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from codespec.errors import InputError

_MAX_DEPTH = 256
"""Most nested brackets; llama.cpp's stack overflows at some ten thousand."""
_MAX_WAYS = 1 << 16
"""Most ways to begin one rule: these take seconds. A list of as many words has so many."""
_MAX_SIZE = 1 << 22
"""Most symbols of the expanded grammar: half a second, some hundred megabytes."""

_WAYS_ON = 32
"""Cost of an optional item behind other optional ones, in symbols: each adds a way to every later
item, and llama.cpp compares every way with all others."""

_NO_END = 2001
"""Number of repetitions from which on llama.cpp takes them as unbounded."""

# Literals, character classes and tokens may hold characters that are syntax elsewhere.
_OPAQUE = r'"(?:\\.|[^"\\])*"?|\[(?:\\.|[^\]\\])*\]?|!?<[^>]*>?|\.'
_COMMENT = re.compile(rf"({_OPAQUE})|#[^\r\n]*", re.S)
_SYMBOL = re.compile(
    rf"(?P<rule>[\w-]+)[ \t]*::=|(?P<name>[\w-]+)|(?P<opaque>{_OPAQUE})|[()|*+?]"
    r"|\{\s*(?P<least>\d{1,20})\s*(?P<to>,\s*(?:(?P<most>\d{1,20})\s*)?)?\}",
    re.S | re.A,
)


@dataclass(slots=True)
class _Item:
    """An item of an alternative. rule: the rule that it refers to, "" for characters. llama.cpp
    expands it `n` times at most, `least` times at least."""

    rule: str
    n_elements: int = 1
    least: int = 1
    n: int = 1


_Rules: TypeAlias = dict[str, list[list[_Item]]]
"""Rule name -> alternatives. As in llama.cpp, a bracket is a rule of its own: "name (1)"."""


def check(grammar: str) -> None:
    """Check that llama.cpp can parse a grammar in bounded time and memory.

    Raises: InputError where it cannot. Other errors in a grammar are left to llama.cpp.
    """
    rules = _read(grammar)
    ways = _ways(rules)
    size = 0
    for alternative in (alternative for rule in rules.values() for alternative in rule):
        n_left_out = 0
        for item in alternative:
            n_ways, may_be_empty = ways.get(item.rule, (0, False))
            size += item.n * (item.n_elements + (n_ways + 2) * (item.n if may_be_empty else 1))
            may_be_left_out = may_be_empty or not item.least
            n_left_out = n_left_out + item.n if may_be_left_out else 0
            size += _WAYS_ON * n_left_out
    if size > _MAX_SIZE:
        raise InputError(
            f"the GBNF grammar stands for more than {_MAX_SIZE:,} symbols",
            "Repeat less, or without an end: x* in place of x{0,1000}.",
        )


def _read(grammar: str) -> _Rules:
    rules: _Rules = {}
    name = ""
    opened: list[list[list[_Item]]] = []
    for symbol in _SYMBOL.finditer(_COMMENT.sub(lambda part: part[1] or "", grammar)):
        said = symbol[0]
        if symbol["rule"]:
            name = symbol["rule"]
            opened = [rules.setdefault(name, [])]
            opened[0][:] = [[]]  # the last one of a name counts
        elif not opened:
            break
        elif said == "(":
            inner = f"{name} ({len(rules)})"
            opened[-1][-1].append(_Item(inner))
            opened.append(rules.setdefault(inner, [[]]))
            if len(opened) > _MAX_DEPTH + 1:
                raise InputError(
                    f"the GBNF grammar's brackets are nested more than {_MAX_DEPTH} deep",
                    "Make rules of the inner ones.",
                )
        elif said == ")":
            opened.pop()
        elif said == "|":
            opened[-1].append([])
        elif symbol["name"]:
            opened[-1][-1].append(_Item(said))
        elif symbol["opaque"]:
            if said not in ('""', "[]", "[^]"):
                opened[-1][-1].append(_Item("", len(said)))
        elif opened[-1][-1]:
            if symbol["least"]:
                least = int(symbol["least"])
                most = int(symbol["most"] or _NO_END) if symbol["to"] else least
            else:
                least, most = int(said == "+"), 1 if said == "?" else _NO_END
            _repeat(opened[-1][-1], least, most)
    return rules


def _repeat(items: list[_Item], least: int, most: int) -> None:
    """Apply a repetition of `least` to `most` times to the last item."""
    if most < least:
        raise InputError(
            f"the GBNF grammar repeats at least {least} times and at most {most}",
            "In x{least,most} the first number is the smaller one.",
        )
    items[-1].least *= least
    # Without an end it is a rule that ends with itself.
    items[-1].n *= most if most < _NO_END else max(least, 1) + 1
    if not items[-1].n:
        items.pop()


def _ways(rules: _Rules) -> dict[str, tuple[int, bool]]:
    """Rule name -> (number of ways to begin the rule, True if it may be empty)."""
    known: dict[str, tuple[int, bool]] = {}
    under_way: set[str] = set()

    def visit(rule: str, home: str) -> Generator[tuple[str, str]]:
        """Count the ways of one rule. Yields (rule, home) to be visited first.

        home: the rule at whose end this one stands, "" for none: recursion into it is tail
        recursion, which llama.cpp handles.
        """
        under_way.add(rule)
        n, is_empty = 0, False
        for alternative in rules[rule]:
            n += 1
            for item in alternative:
                is_end = item is alternative[-1] and item.n == 1
                if item.rule in under_way:
                    if is_end and item.rule == home:
                        break
                    raise InputError(
                        f"the GBNF grammar has left recursion: its rule {_named(item.rule)} can "
                        "begin with itself",
                        "Repeat instead: list ::= item (comma item)*",
                    )
                if item.rule in rules and item.rule not in known:
                    is_group = " " in item.rule
                    yield item.rule, (home if is_end else "") if is_group else item.rule
                n_ways, may_be_empty = known.get(item.rule, (0, False))
                n += (n_ways + 2) * (item.n if may_be_empty else 1) if item.rule else 0
                if not may_be_empty and item.least:
                    break
            else:
                is_empty = True
        if n > _MAX_WAYS:
            raise InputError(
                f"the GBNF grammar's rule {_named(rule)} can begin in more than {_MAX_WAYS:,} ways",
                "Begin alternatives that begin alike once: a (b | c) in place of a b | a c.",
            )
        under_way.remove(rule)
        known[rule] = n, is_empty

    for start in rules:
        visits = [] if start in known else [visit(start, start)]
        while visits:
            needed = next(visits[-1], None)
            if needed is None:
                visits.pop()
            else:
                visits.append(visit(*needed))
    return known


def _named(rule: str) -> str:
    return rule.partition(" ")[0]
