"""JSON5 (spec.json5.org): JSON as people write it in JavaScript."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE,
    NEVER,
    SINGLE,
    SLASH_STAR,
    SLASHES,
    JsonDialect,
    Language,
)

LANGUAGE = Language(
    name="json5",
    extensions=(".json5",),
    ids=("json5",),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE, SINGLE),
    continues=NEVER,
    unfinished=r":\Z",
    conditional=False,
    brace_is_value=True,
    json=JsonDialect(comments=True, trailing_commas="right", is_json5=True),
)
