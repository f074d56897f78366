"""Elixir; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE_OVER_LINES,
    HASH,
    SINGLE,
    TRIPLE_DOUBLE,
    TRIPLE_SINGLE,
    Language,
    Words,
)

LANGUAGE = Language(
    name="elixir",
    extensions=(".ex", ".exs"),
    ids=("elixir",),
    line_comments=(HASH,),
    strings=(TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE_OVER_LINES, SINGLE),
    characters=r"(?<!\w)\?\\?[^\s\w]",
    documentation=("#",),
    words=Words(
        opens={"end": r"(?<!:)\b(?:do|else|rescue|catch|after)\Z|\bfn(?:\b(?!.*\bend\b).*->)?\Z"},
        ends=("end",),
        branches=("else ", "rescue ", "catch ", "after "),
    ),
    heads="arrow",
    continues=r"\|>|\.|when\b",
    unfinished=r"(?:[-+*/%&|^=<>.,\\]|->|\b(?:and|or|not|in|when))$",
    brace_is_value=True,
    declares="by assignment",
)
