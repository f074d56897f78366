"""Shells that are like Bourne's."""

from __future__ import annotations

from codespec.languages.base import DOUBLE_OVER_LINES, Language, LineComment, Quotes, Words

# The sign also stands in `${#x}`, `$#`, `a#b`.
BEFORE_COMMENT = r"(?:(?<=[\s;&|)`])(?<!\(\( )|(?<![\s\S]))"
HERE = r"(?<!<)<<-?[ \t]*['\"\\]?(?P<here>[A-Za-z_]\w*)['\"]?(?=[ \t;&|>\n]|\Z)"
CASE = r"(?:\"[^\"\n]*\"|[^\s()|\"])+"
LANGUAGE = Language(
    name="shell",
    extensions=(".sh", ".bash", ".zsh", ".ksh", ".bats"),
    ids=("shellscript", "sh", "bash", "zsh", "ksh"),
    line_comments=(LineComment("#", after=BEFORE_COMMENT),),
    strings=(DOUBLE_OVER_LINES, Quotes("'", escape="none", over_lines=True)),
    characters=r"\\(?s:.)",
    heredocs=HERE,
    case_label=rf"\s*{CASE}(?:[ \t]*\|[ \t]*{CASE})*[ \t]*",
    documentation=("#",),
    words=Words(
        opens={
            "fi": r"\bthen\Z|^else\Z",
            "done": r"(?:^|[\s;)])do\Z",
            "esac": r"(?:^|[\s;(])case\s(?!.*\besac\b).*\bin\Z",
        },
        # With `then` or `do` in the next line. Z shell's may have braces instead.
        begins={
            "fi": r"^if\b(?!.*(?:\bfi\b|[{}]\Z))",
            "done": r"(?:^|\|[ \t]*)(?:while|until|for|select)\b(?!.*(?:\bdone\b|[{}]\Z))",
        },
        ends=("fi", "done", "esac"),
        branches=("elif ", "else ", "then ", "do "),
    ),
    heads="label",
    continues=r"\|\|?|&&",
    unfinished=r"(?:\\|\||&&)$",
)
