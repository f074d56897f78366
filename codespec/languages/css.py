"""CSS."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, SINGLE, SLASH_STAR, Language

LANGUAGE = Language(
    name="css",
    extensions=(".css", ".pcss", ".postcss"),
    ids=("css", "postcss"),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE, SINGLE),
    # An address without quotes, which may hold any sign but a bracket.
    characters=r"(?<=\burl\()[^\s\"'()\n][^\s()\n]*(?=\))",
    semicolons=True,
    conditional=False,
)
