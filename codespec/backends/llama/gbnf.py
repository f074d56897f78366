"""What a GBNF grammar asks of llama.cpp, found out before llama.cpp sees it.

llama.cpp reads brackets by recursion, writes repetitions out, and follows every way to begin a
rule through the rules it begins with, the same one again for each way there. It misses left
recursion behind rules that are empty by way of others. So a short text can take all time or memory
there is, or end the process. Here each rule is counted once, whatever leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from codespec.errors import InputError

_MAX_DEPTH = 256
"""Its stack ends with some ten thousand."""
_MAX_WAYS = 1 << 16
"""To begin one rule: these take seconds. A list of as many words has so many."""
_MAX_SIZE = 1 << 22
"""Of all that is written out and walked: half a second, some hundred megabytes."""

_WAYS_ON = 32
"""From each of several that may be left out, one after another, there is a way to each later one,
and llama.cpp compares every way with all others."""

_NO_END = 2001
"""What llama.cpp takes so many repetitions for, and more."""

# Texts, characters and tokens may hold whatever is a sign elsewhere.
_OPAQUE = r'"(?:\\.|[^"\\])*"?|\[(?:\\.|[^\]\\])*\]?|!?<[^>]*>?|\.'
_COMMENT = re.compile(rf"({_OPAQUE})|#[^\r\n]*", re.S)
_SYMBOL = re.compile(
    rf"(?P<rule>[\w-]+)[ \t]*::=|(?P<name>[\w-]+)|(?P<opaque>{_OPAQUE})|[()|*+?]"
    r"|\{\s*(?P<least>\d{1,20})\s*(?P<to>,\s*(?:(?P<most>\d{1,20})\s*)?)?\}",
    re.S | re.A,
)


@dataclass(slots=True)
class _Item:
    """rule: what it refers to; "" for characters. Written out n times at most, `least` if that is
    more than none."""

    rule: str
    n_elements: int = 1
    least: int = 1
    n: int = 1


_Rules: TypeAlias = dict[str, list[list[_Item]]]
"""Name -> alternatives. As in llama.cpp, what is in brackets is a rule of its own: "name (1)"."""


def check(grammar: str) -> None:
    """Raises: InputError for a grammar that llama.cpp would not get done with. One that is wrong
    in other ways is left to llama.cpp to refuse."""
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
    """What this makes of the last one of them."""
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
    """Name -> how many ways there are to begin a rule, and whether it may be empty."""
    known: dict[str, tuple[int, bool]] = {}
    under_way: set[str] = set()

    def visit(rule: str, home: str) -> Generator[tuple[str, str]]:
        """Yields what has to be known first. home: the rule at whose end this one stands, if it
        does: to go on with that is to begin again, which llama.cpp notices."""
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
