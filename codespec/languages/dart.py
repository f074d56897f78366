"""Dart; codespec has no grammar of it."""

from __future__ import annotations

from dataclasses import replace

from codespec.languages.base import (
    DOLLAR_BRACES,
    NESTED_SLASH_STAR,
    SLASHES,
    TRIPLE_DOUBLE,
    TRIPLE_SINGLE,
    Language,
    Quotes,
)

RAW = r"(?<=\br)"
LONG = (TRIPLE_DOUBLE, TRIPLE_SINGLE)
SHORT = (Quotes('"'), Quotes("'"))
LANGUAGE = Language(
    name="dart",
    extensions=(".dart",),
    ids=("dart",),
    line_comments=(SLASHES,),
    block_comments=(NESTED_SLASH_STAR,),
    strings=(
        *(replace(quotes, escape="none", after=RAW) for quotes in LONG),
        *(replace(quotes, code=DOLLAR_BRACES) for quotes in LONG),
        *(replace(quotes, escape="none", after=RAW) for quotes in SHORT),
        *(replace(quotes, code=DOLLAR_BRACES) for quotes in SHORT),
    ),
    semicolons=True,
    types_in_angles=True,
    declares="type first",
)
