"""Kotlin; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    CHARACTER,
    DOLLAR_BRACES,
    NESTED_SLASH_STAR,
    SLASHES,
    Language,
    Quotes,
)

LANGUAGE = Language(
    name="kotlin",
    extensions=(".kt", ".kts"),
    ids=("kotlin",),
    line_comments=(SLASHES,),
    block_comments=(NESTED_SLASH_STAR,),
    strings=(
        Quotes('"""', escape="none", over_lines=True, code=DOLLAR_BRACES),
        Quotes('"', code=DOLLAR_BRACES),
        CHARACTER,
    ),
    conditional=False,
    types_in_angles=True,
)
