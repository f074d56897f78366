"""Haskell, without a grammar: a block is told by its indentation."""

from __future__ import annotations

from codespec.languages.base import CHARACTER, DOUBLE, BlockComment, Language, LineComment, Quotes

# With these, dashes are an operator, as in `-->`; a prime belongs to a name, as in `foldl'`.
SIGN = r"[!#$%&*+./<=>?@\\^|~:]"
QUOTE = Quotes("'", is_character=CHARACTER.is_character, after=r"(?<![\w'])")
LANGUAGE = Language(
    name="haskell",
    extensions=(".hs", ".hsc", ".hs-boot"),
    ids=("haskell",),
    line_comments=(LineComment("--", unless=rf"-*{SIGN}", after=rf"(?<!{SIGN[:-1]}-])"),),
    # To people, what tells the compiler is code.
    block_comments=(BlockComment("{-", "-}", nests=True, after=r"(?!\{-#)"),),
    strings=(DOUBLE, QUOTE),
    documentation=("--", "{-"),
    indents=r"^(?!module\b).*\bwhere\Z|\b(?:do|mdo|of|let|if|then|else|rec)\Z|\\cases?\Z"
    r"|(?:[\w)\]'\"]|\s)(?:=|->|<-)\Z",
    branches=("then ", "else "),
    continues=r"(?:then|else|of|in|where)\b|[-+*/<>=&|$.^!,)\]}:@]",
    unfinished=r"(?:[-+*/<>=&|$.^!,\\:]|\b(?:let|in|if|of|do|where|then|else))$",
    conditional=False,
    brace_is_value=True,
    no_comma_before=r"[\]}]",
)
