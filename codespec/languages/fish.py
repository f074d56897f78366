"""The shell fish, without a grammar."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE_OVER_LINES,
    SINGLE_OVER_LINES,
    Language,
    LineComment,
    Words,
)

BLOCK = r"if|for|while|function|switch|begin"
LANGUAGE = Language(
    name="fish",
    extensions=(".fish",),
    ids=("fish",),
    line_comments=(LineComment("#", after=r"(?<![^\s;&|(])"),),
    strings=(DOUBLE_OVER_LINES, SINGLE_OVER_LINES),
    characters=r"\\(?s:.)",
    documentation=("#",),
    words=Words(
        opens={
            "end": rf"(?:^|[;&|(]\s*|\b(?:and|or|not)\s+)(?:{BLOCK})\b(?!.*\bend\b)"
            r"|^(?:else|case)\b"
        },
        ends=("end",),
        branches=("else ", "case "),
    ),
    continues=r"\||&&|(?:and|or)\b",
    unfinished=r"(?:\\|\||&&)$",
    conditional=False,
    brace_is_value=True,
)
