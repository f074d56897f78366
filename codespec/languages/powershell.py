"""PowerShell; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import BlockComment, Language, LineComment, Quotes

LANGUAGE = Language(
    name="powershell",
    extensions=(".ps1", ".psm1", ".psd1"),
    ids=("powershell", "ps1"),
    line_comments=(LineComment("#", after=r"(?<![^\s(){};|])"),),
    block_comments=(BlockComment("<#", "#>"),),
    strings=(
        Quotes('@"', '\n"@', escape="none", over_lines=True),
        Quotes("@'", "\n'@", escape="none", over_lines=True),
        Quotes('"', escape="backtick", over_lines=True, code=("$(", ")")),
        Quotes("'", escape="doubled", over_lines=True),
    ),
    characters=r"`(?s:.)",
    documentation=("#", "<#", "#>", "."),
    conditional=False,
    unfinished=r"(?:[-+*/%=|,`]|&&|\|\||\s-\w+)$",
    continues=r"\|(?!\|)|(?:else|elseif|catch|finally|until)\b|[.:]",
    no_comma_before=r"[)\]}]",
)
