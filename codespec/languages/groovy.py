"""Groovy, also Gradle's scripts and Jenkins' pipelines; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    DOLLAR_BRACES,
    SINGLE,
    SLASH_STAR,
    SLASHES,
    TRIPLE_SINGLE,
    Language,
    Quotes,
)

LANGUAGE = Language(
    name="groovy",
    extensions=(".groovy", ".gradle", ".gvy", ".jenkinsfile"),
    files=("jenkinsfile",),
    ids=("groovy", "gradle", "jenkinsfile"),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(
        Quotes('"""', over_lines=True, code=DOLLAR_BRACES),
        TRIPLE_SINGLE,
        Quotes('"', code=DOLLAR_BRACES),
        SINGLE,
        Quotes("$/", "/$", escape="none", over_lines=True),
        Quotes("/", code=DOLLAR_BRACES, after=r"(?:(?<=~)|(?<=[=(,] ))(?!/ )"),
    ),
    types_in_angles=True,
)
