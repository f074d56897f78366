"""Makefiles, as of GNU make."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, NEVER, Language, LineComment, Quotes, Words

LANGUAGE = Language(
    name="makefile",
    extensions=(".mk", ".mak", ".make"),
    files=("makefile", "gnumakefile", "bsdmakefile"),
    ids=("makefile", "make"),
    line_comments=(LineComment("#", after=r"(?<![\\$])"),),
    strings=(DOUBLE, Quotes("'", escape="none", after=r"(?<!\w)")),
    documentation=("#",),
    words=Words(
        opens={"endif": r"^(?:ifn?eq|ifn?def)\b", "endef": r"^define\b"},
        ends=("endif", "endef"),
        branches=("else ",),
        flat=True,
    ),
    # A rule; not one for make itself, nor a variable.
    indents=r"^(?!\.[A-Z_]+\s*:)[^\s#=:][^=:]*::?(?!=)[^=]*\Z",
    by_tab=True,
    continues=NEVER,
    unfinished=r"\\$",
    conditional=False,
    brace_is_value=True,
)
