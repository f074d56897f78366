"""Scala, without a grammar: braces delimit blocks, or indentation does."""

from __future__ import annotations

from codespec.languages.base import (
    BACKTICK,
    DOUBLE,
    NESTED_SLASH_STAR,
    RAW_TRIPLE,
    SLASHES,
    Language,
    Quotes,
)

LANGUAGE = Language(
    name="scala",
    extensions=(".scala", ".sc", ".sbt"),
    ids=("scala", "sbt"),
    line_comments=(SLASHES,),
    block_comments=(NESTED_SLASH_STAR,),
    strings=(
        RAW_TRIPLE,
        DOUBLE,
        BACKTICK,
        Quotes("'", is_character=True, after=r"(?<![\w'])"),
    ),
    indents=r"(?<![:<>=!])=>?\Z|<-\Z"
    r"|\b(?:then|do|else|yield|try|catch|finally|match|return|throw|for|with)\Z"
    # Of a type, or an argument; a name's type is no head.
    r"|^(?!.*\b(?:val|var|def)\b(?!.*=)).*[\w\])>]:\Z",
    branches=("else ", "catch ", "finally ", "yield ", "then ", "do ", "end "),
    continues=r"\.(?!\.)|(?:else|catch|finally|yield|extends|with|then|do|end|derives)\b"
    r"|[-+*/%&|^<>=!:]|[)\]}]",
    unfinished=r"(?:[-+*/%&|^=<>.,\\]|=>|<-|\b(?:extends|with|if|while|for|case|new))$",
    conditional=False,
    declares="type first",
)
