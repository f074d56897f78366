"""Vim script, old and new, without a grammar."""

from __future__ import annotations

from codespec.languages.base import NEVER, Language, LineComment, Quotes, Words

TAKES = ("echo", "echom", "echomsg", "echon", "execute", "exe", "return", "throw", "in", "is")
NO_ARGUMENT = "".join(rf"(?<!\b{word} )" for word in TAKES)
# A quote behind a value that no other follows in its line.
BEHIND = LineComment(
    '"',
    unless=r'[^"\n]*"',
    after=NO_ARGUMENT + r"(?:(?<=[\w)\]}'\"][ \t])|(?<=[ \t]{2}))",
)
VIM_9 = LineComment("#", unless=r"\{", after=r"(?<![^\s])")
LANGUAGE = Language(
    name="vim",
    extensions=(".vim",),
    files=(".vimrc", "_vimrc", ".gvimrc", "_gvimrc", ".exrc", ".ideavimrc"),
    ids=("vim", "viml"),
    line_comments=(LineComment('"', begins_line=True), BEHIND, VIM_9),
    strings=(Quotes('"', after="(?<![@&<>])"), Quotes("'", escape="doubled")),
    documentation=('"', "#"),
    words=Words(
        opens={
            "endif": r"^(?:if\b(?!.*\bendif\b)|else(?:if)?\b)",
            "endfor": r"^for\b(?!.*\bendfor\b)",
            "endwhile": r"^wh(?:ile)?\b(?!.*\bendwhile\b)",
            "endfunction": r"^(?:export )?fu(?:n|nc|nct|ncti|nctio|nction)?\b!?\s*[\w:.#<>{}]+\(",
            "enddef": r"^(?:export |static )*def\b!?\s*[\w:.#<>]+\(",
            "endtry": r"^(?:try\b(?!.*\bendtry\b)|catch\b|finally\b)",
            "endclass": r"^(?:export |abstract )*class\b",
            "augroup END": r"^aug(?:roup)?\s+(?!END\b)\S+",
        },
        ends=(
            *("endif", "en", "endfor", "endfo", "endwhile", "endw", "endfunction", "endfunc"),
            *("endfun", "endf", "enddef", "endtry", "endt", "endclass", "augroup END", "aug END"),
        ),
        branches=("else ", "elseif ", "catch ", "finally "),
        flat=True,
    ),
    continues=r"\\",
    unfinished=NEVER,
    brace_is_value=True,
    no_comma_before=r"\)",
)
