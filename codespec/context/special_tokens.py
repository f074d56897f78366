"""Special tokens in prompts, apart from text that spells them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from codespec.types import Tokenizer, Tokens


class Special(str):
    """Spelling of a special token in a prompt or an answer."""

    __slots__ = ()


Part: TypeAlias = "Special | str"


def encoded(parts: Iterable[Part], ids: Mapping[str, int], tokenizer: Tokenizer) -> Tokens:
    """(n,) the tokens of a prompt. ids: of special tokens, by their spelling. Text between two
    special tokens is tokenised as a whole."""
    parts = list(parts)
    special = {str(part) for part in parts if isinstance(part, Special) and part in ids}
    chunks: list[Tokens] = []
    text = ""

    def flush() -> None:
        nonlocal text
        if text:
            chunks.append(
                _plain(text, {spelling: ids[spelling] for spelling in special}, tokenizer)
            )
        text = ""

    for part in parts:
        if isinstance(part, Special) and part in ids:
            flush()
            chunks.append(np.array([ids[part]], np.int32))
        else:
            text += part
    flush()
    return np.concatenate(chunks) if chunks else np.zeros(0, np.int32)


def _plain(text: str, special: Mapping[str, int], tokenizer: Tokenizer) -> Tokens:
    """The tokens of a text, which may spell special tokens. Some vocabularies find theirs in any
    text; it is cut within such a spelling then."""
    tokens = tokenizer.encode(text)
    if not np.isin(tokens, list(special.values())).any():
        return tokens
    cuts = [found.start() + 1 for found in _any_of(special).finditer(text)]
    bounds = pairwise((0, *cuts, len(text)))
    return np.concatenate([tokenizer.encode(text[start:end]) for start, end in bounds])


def _any_of(spellings: Collection[str]) -> re.Pattern[str]:
    """A pattern that matches the longest of these."""
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})")


def specials_in(text: str, vocabulary: Collection[str]) -> tuple[Part, ...]:
    """The parts of a prompt that a client wrote, in which special tokens are spelled out. A longer
    spelling goes before one that it begins with."""
    if not vocabulary:
        return (text,) if text else ()
    found = _any_of(vocabulary).split(text)
    return tuple(Special(part) if i % 2 else part for i, part in enumerate(found) if part)
