"""Julia, without a grammar."""

from __future__ import annotations

from codespec.languages.base import (
    BACKTICK,
    DOUBLE_OVER_LINES,
    HASH,
    TRIPLE_DOUBLE,
    BlockComment,
    Language,
    Quotes,
    Words,
)

# Behind a value, a quote is a transpose.
AFTER_NO_VALUE = r"(?<![\w)\]}'.\"])"
DEFINES = r"function|macro|(?:mutable )?struct|(?:abstract|primitive) type|(?:bare)?module"
MACROS = r"(?:@[\w.!]+ )*"
BLOCK = rf"{MACROS}(?:{DEFINES}|if|for|while|let|begin|quote|try)"
BRANCH = r"else|elseif|catch|finally"
# The `end` of a block; that of an index is followed by its bracket.
ENDED = r"(?!.*\bend\b[\s;,)]*\Z)"
LANGUAGE = Language(
    name="julia",
    extensions=(".jl",),
    ids=("julia",),
    line_comments=(HASH,),
    block_comments=(BlockComment("#=", "=#", nests=True),),
    strings=(
        TRIPLE_DOUBLE,
        DOUBLE_OVER_LINES,
        Quotes("```", over_lines=True),
        BACKTICK,
        Quotes("'", is_character=True, after=AFTER_NO_VALUE),
    ),
    characters=rf"{AFTER_NO_VALUE}'''",
    documentation=("#", '"""'),
    docstring='"""',
    words=Words(
        opens={
            "end": rf"^(?:{BLOCK}|{BRANCH})\b{ENDED}"
            rf"|(?:=|\breturn|\() *{MACROS}(?:if|for|let|begin|quote|try|function)\b{ENDED}"
            r"|\bdo(?:\s[\w, ()]+)?\Z"
        },
        ends=("end",),
        branches=("else ", "elseif ", "catch ", "finally "),
        flat=True,
    ),
    continues=r"\|>|&&|\|\||[)\]}]",
    unfinished=r"(?:[-+*/\\%^&|=<>~?,÷∘×⊗]|[^.]\.|\b(?:in|isa|where))$",
    comma_goes_on=True,
)
