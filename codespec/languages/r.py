"""R; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    BACKTICK,
    DOUBLE_OVER_LINES,
    HASH,
    SINGLE_OVER_LINES,
    Language,
    Quotes,
)

PAIRS = {"(": ")", "[": "]", "{": "}"}
RAW = tuple(
    Quotes(
        f"{letter}{quote}{dashes}{opener}",
        f"{closer}{dashes}{quote}",
        escape="none",
        over_lines=True,
        after=r"(?<![\w.])",
    )
    for letter in "rR"
    for quote in "\"'"
    for dashes in ("", "-", "--", "---")
    for opener, closer in PAIRS.items()
)
LANGUAGE = Language(
    name="r",
    extensions=(".r",),
    files=(".rprofile",),
    ids=("r",),
    line_comments=(HASH,),
    strings=(*RAW, DOUBLE_OVER_LINES, SINGLE_OVER_LINES, BACKTICK),
    documentation=("#",),
    conditional=False,
    unfinished=r"(?:[-+*/^%&|<>=~,!$@:]|\|>)$",
    continues=r"else\b",
)
