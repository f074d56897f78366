"""LaTeX: prose, and commands in it."""

from __future__ import annotations

from codespec.languages.base import NEVER, Language, LineComment, Words

LANGUAGE = Language(
    name="latex",
    extensions=(".tex", ".sty", ".cls", ".ltx"),
    ids=("latex", "tex", "plaintex"),
    line_comments=(LineComment("%"),),
    strings=(),
    # Brackets but braces are prose, or a formula's; what is written word by word is neither.
    characters=r"\\verb\*?(?P<verb>[^\sA-Za-z*])[^\n]*?(?:(?P=verb)|(?=\n)|\Z)"
    r"|\\[^A-Za-z@\n]",
    text=r"[()\[\]]",
    pairs=(("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), (r"\{", r"\}"), (r"\left", r"\right")),
    documentation=("%",),
    words=Words(
        opens={r"\end{\1}": r"\\begin\{([^{}\n]*)\}"},
        ends=("\\end",),
        branches=(),
        flat=True,
    ),
    continues=NEVER,
    unfinished=NEVER,
    conditional=False,
    brace_is_value=True,
)
