"""TOML."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, HASH, NEVER, TRIPLE_DOUBLE, Language, Quotes

LANGUAGE = Language(
    name="toml",
    extensions=(".toml",),
    files=("cargo.lock", "poetry.lock", "uv.lock", "pipfile"),
    ids=("toml",),
    line_comments=(HASH,),
    strings=(
        TRIPLE_DOUBLE,
        Quotes("'''", escape="none", over_lines=True),
        DOUBLE,
        Quotes("'", escape="none"),
    ),
    documentation=("#",),
    continues=NEVER,
    unfinished=r"=$",
    no_comma_before=r"\}",
)
