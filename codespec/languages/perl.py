"""Perl; codespec has no grammar of it."""

from __future__ import annotations

import re

from codespec.languages.base import (
    DOUBLE_OVER_LINES,
    SINGLE_OVER_LINES,
    BlockComment,
    Language,
    LineComment,
    Quotes,
)

# A name or a key that is called as an operator is none.
OPERATOR = r"(?<![\w$@%&>])"
PAIRS = {"{": "}", "(": ")", "[": "]", "<": ">"}
QUOTED = tuple(
    Quotes(f"{word}{opener}", closer, over_lines=True, nests=True, after=OPERATOR)
    for word in ("q", "qq", "qw", "qr", "m")
    for opener, closer in PAIRS.items()
)
OTHERS = tuple(
    Quotes(f"{word}{sign}", sign, over_lines=True, after=OPERATOR)
    for word in ("q", "qq", "qw", "qr", "m")
    for sign in "/|!"
)
PART = r"(?:\\.|[^/\\\n])*"
BRACED = r"\{(?:\\.|[^{}\\\n]|\{(?:\\.|[^{}\\\n])*\})*\}"
BEFORE = ("=~ ", "!~ ", "=~", "(", ", ", "split ", "if ", "unless ", "and ", "&& ")
MAY_STAND = "|".join(f"(?<={re.escape(text)}/)" for text in BEFORE)
PATTERNS = (
    rf"{OPERATOR}(?:s|tr|y)(?:/{PART}/{PART}/|{BRACED}\s*{BRACED})[a-z]*"
    rf"|/(?:{MAY_STAND})(?![/ ]){PART}/[a-z]*|\\#"
)
DOCUMENTATION = tuple(
    BlockComment(f"={word}", "\n=cut", after="(?m:^)")
    for word in ("pod", "head", "over", "item", "begin", "for", "encoding")
)
LANGUAGE = Language(
    name="perl",
    extensions=(".pl", ".pm", ".t", ".psgi"),
    ids=("perl",),
    shared=(".pl", ".t"),
    line_comments=(LineComment("#", after=r"(?<!\$)"),),
    block_comments=DOCUMENTATION,
    strings=(*QUOTED, *OTHERS, DOUBLE_OVER_LINES, SINGLE_OVER_LINES),
    characters=PATTERNS,
    heredocs=r"(?<![<\w])<<~?[\"']?(?P<here>[A-Za-z_]\w*)[\"']?",
    documentation=("#", "="),
    prose_lines=(r"=[a-z]", "=cut"),
    semicolons=True,
)
