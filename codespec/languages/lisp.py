"""Common Lisp; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE_OVER_LINES,
    NEVER,
    BlockComment,
    Language,
    LineComment,
    Quotes,
)

NESTED = BlockComment("#|", "|#", nests=True)
SEMICOLON = LineComment(";", after="(?<!#)")
SYMBOL = Quotes("|", over_lines=True)
LANGUAGE = Language(
    name="lisp",
    extensions=(".lisp", ".lsp", ".cl", ".asd"),
    ids=("lisp", "commonlisp"),
    shared=(".cl",),
    line_comments=(SEMICOLON,),
    block_comments=(NESTED,),
    strings=(DOUBLE_OVER_LINES, SYMBOL),
    characters=r"#\\(?:[A-Za-z_\d-]+|(?s:.))",
    documentation=(";",),
    conditional=False,
    brace_is_value=True,
    continues=NEVER,
    unfinished=NEVER,
)
