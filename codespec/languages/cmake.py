"""CMake, without a grammar."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE_OVER_LINES,
    HASH,
    NEVER,
    BlockComment,
    Language,
    Quotes,
    Words,
)

NAMES = ("if", "foreach", "while", "function", "macro", "block")
BRANCHES = ("else(", "elseif(", "else (", "elseif (")
ENDS = tuple(f"end{name}" for name in NAMES)
LANGUAGE = Language(
    name="cmake",
    extensions=(".cmake",),
    files=("cmakelists.txt",),
    ids=("cmake",),
    line_comments=(HASH,),
    block_comments=(BlockComment("#[[", "]]"), BlockComment("#[=[", "]=]")),
    strings=(
        DOUBLE_OVER_LINES,
        Quotes("[[", "]]", escape="none", over_lines=True),
        Quotes("[=[", "]=]", escape="none", over_lines=True),
    ),
    characters=r"\\[^\w\n]",
    documentation=("#",),
    words=Words(
        opens={f"end{name}()": rf"(?i:^{name})\s*\(" for name in NAMES},
        ends=(*ENDS, *map(str.upper, ENDS)),
        branches=(*BRANCHES, *map(str.upper, BRANCHES)),
        flat=True,
    ),
    continues=NEVER,
    unfinished=NEVER,
    conditional=False,
    brace_is_value=True,
)
