"""Erlang; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE_OVER_LINES,
    RAW_TRIPLE,
    SINGLE,
    Language,
    LineComment,
)

LANGUAGE = Language(
    name="erlang",
    extensions=(".erl", ".hrl", ".escript", ".app", ".xrl", ".yrl"),
    files=("rebar.config",),
    ids=("erlang",),
    line_comments=(LineComment("%"),),
    strings=(RAW_TRIPLE, DOUBLE_OVER_LINES, SINGLE),
    characters=r"(?<!\w)\$(?:\\(?:\^?(?s:.))|[^\s\\])",
    documentation=("%",),
    heads="arrow",
    conditional=False,
    unfinished=r"(?:[-+*/=<>|!]|->|\b(?:when|of|and|or|andalso|orelse|not|div|rem|band|bor))$",
    continues=r"when\b|\|\||(?:andalso|orelse)\b",
    no_comma_before=r"[)\]}]",
)
