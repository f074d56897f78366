"""Nix; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    DOLLAR_BRACES,
    HASH,
    SLASH_STAR,
    Language,
    Quotes,
)

LANGUAGE = Language(
    name="nix",
    extensions=(".nix",),
    ids=("nix",),
    line_comments=(HASH,),
    block_comments=(SLASH_STAR,),
    strings=(
        Quotes('"', over_lines=True, code=DOLLAR_BRACES),
        Quotes(
            "''",
            escape="none",
            unless=r"['$\\]",
            over_lines=True,
            code=DOLLAR_BRACES,
            after=r"(?<![\w'])",
        ),
    ),
    documentation=("#", "/*", "* ", "*/"),
    semicolons=True,
    conditional=False,
)
