"""F#; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    CHARACTER,
    DOUBLE_OVER_LINES,
    RAW_TRIPLE,
    SLASHES,
    BlockComment,
    Language,
    Quotes,
)

VERBATIM = Quotes('"', escape="doubled", over_lines=True, after=r"(?:(?<=@)|(?<=@\$))")
LANGUAGE = Language(
    name="fsharp",
    extensions=(".fs", ".fsi", ".fsx", ".fsscript"),
    ids=("fsharp",),
    shared=(".fs",),
    line_comments=(SLASHES,),
    block_comments=(BlockComment("(*", "*)", nests=True, after=r"(?!\(\*\))"),),
    strings=(RAW_TRIPLE, VERBATIM, DOUBLE_OVER_LINES, CHARACTER),
    documentation=("//", "(*", "*)"),
    conditional=False,
    unfinished=r"(?:[-+*/%&|^=<>,:(\[{]|->|\b(?:and|or|not|in|then|else|do|of|with|fun|when))$",
    continues=r"\|>?|\.|>>|&&|(?:then|else|elif|with|finally|and)\b|[)\]}]",
)
