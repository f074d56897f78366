"""Parsing with the grammars of languages, which are loaded when first needed."""

from __future__ import annotations

import importlib
import re
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import cast

from tree_sitter import Language, Parser, Point, Tree

from codespec.languages.base import Grammar
from codespec.languages.registry import record_of
from codespec.system import pulse


def facts_of(language: str) -> Grammar:
    """The record of a language's grammar. Raises: ValueError for a language without one."""
    found = record_of(language).grammar
    if found is None:
        raise ValueError(f"{language} has no grammar here")
    return found


@cache
def grammar(language: str) -> Language:
    """The tree-sitter grammar. Raises: ValueError for a language without one."""
    found = facts_of(language)
    load = getattr(importlib.import_module(found.module), found.function)
    return Language(cast(Callable[[], object], load)())


@cache
def _names(language: str) -> re.Pattern[bytes] | None:
    """The last letters, with the sign behind them, of words that the grammar ought to take for
    names; None where there are none."""
    words = facts_of(language).names_before_equals
    if not words:
        return None
    # The sign is found first, which is quick; then the words of each length are looked for.
    lengths = sorted({len(word) for word in words})
    before = ("|".join(word for word in words if len(word) == n) for n in lengths)
    behind = "|".join(rf"(?<=\b(?:{each})=)" for each in before)
    return re.compile(f"=(?:{behind})".encode())


def _with_names(text: bytes, start: int, end: int, names: re.Pattern[bytes]) -> bytes:
    """Bytes start..end - 1 of a text, in which each word that `names` finds ends with `_`. What
    the word and the byte behind it are decides alone: so parts of trees may be used again."""
    first = max(0, start - _MAX_NAME)
    part = bytearray(text[first : end + _MAX_NAME])
    for m in names.finditer(part):
        part[m.start() - 1] = ord("_")
    return bytes(part[start - first : end - first])


_local = threading.local()  # parsers keep state: one each a thread
_N_LENT = 4096
"""Bytes of a text that a parser gets at a time."""
_MAX_NAME = 16
"""Bytes; more than any reserved word and the sign behind it has."""


def syntax_tree(
    language: str,
    text: bytes,
    old: Tree | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Tree | None:
    """The text's tree, or None when it takes too long, or `interrupted` turns true.

    old: the tree of the text before an edit, told of the edit; what it shares is not parsed again.

    Raises: ValueError for a language without a grammar.
    """
    parsers: dict[str, tuple[Parser, bytearray]] = _local.__dict__.setdefault("parsers", {})
    if language not in parsers:
        parsers[language] = Parser(grammar(language)), bytearray()
    parser, lent = parsers[language]
    names = _names(language)
    # tree-sitter calls back every 100 steps, which is 50 to 200 bytes of ordinary code. A limit on
    # steps, not on time: the same text must give the same tree on a busy machine. But there are
    # grammars whose steps may take a hundred times as long, in text that is none. A request may
    # parse a whole text three times, and has five seconds for that.
    budget = 1000 + len(text) // 5
    latest = time.thread_time() + 0.25 + 1.5e-6 * len(text)

    def read(offset: int, _: Point) -> bytearray:
        # The binding never lets go of what it was given to read, so it is always given the same.
        end = offset + _N_LENT
        lent[:] = _with_names(text, offset, end, names) if names else text[offset:end]
        return lent

    def stop(_offset: int, _has_error: bool) -> bool:
        nonlocal budget
        pulse.step()
        budget -= 1
        return budget < 0 or time.thread_time() > latest or interrupted()

    try:
        if old is None:
            return parser.parse(read, progress_callback=stop)
        return parser.parse(read, old, progress_callback=stop)
    except ValueError:  # stopped
        parser.reset()
        return None
    finally:
        lent.clear()
