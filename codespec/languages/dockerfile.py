"""Dockerfiles, also under other tools' names."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, NEVER, SINGLE, Language, LineComment

LANGUAGE = Language(
    name="dockerfile",
    extensions=(".dockerfile", ".containerfile"),
    files=("dockerfile", "containerfile"),
    ids=("dockerfile",),
    line_comments=(LineComment("#", begins_line=True),),
    strings=(DOUBLE, SINGLE),
    characters=r"\\(?s:.)",
    heredocs=r"(?<!<)<<-?[\"']?(?P<here>[A-Za-z_]\w*)[\"']?(?=[ \t;&|>\n]|\Z)",
    documentation=("#",),
    conditional=False,
    continues=NEVER,
    unfinished=r"(?:\\|&&|\|)$",
    no_comma_before=r"\]",
)
