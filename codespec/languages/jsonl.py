"""JSON Lines: a value a line."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, NEVER, JsonDialect, Language

LANGUAGE = Language(
    name="jsonl",
    extensions=(".jsonl", ".ndjson"),
    ids=("jsonl", "ndjson"),
    strings=(DOUBLE,),
    continues=NEVER,
    unfinished=r":\Z",
    conditional=False,
    brace_is_value=True,
    json=JsonDialect(one_a_line=True),
)
