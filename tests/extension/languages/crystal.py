"""Crystal, without a grammar."""

from __future__ import annotations

from codespec.languages.base import BACKTICK, DOUBLE_OVER_LINES, HASH, Language, Quotes, Words

BLOCK = r"class|struct|module|def|macro|enum|if|unless|while|until|case|begin|else|elsif|when"
LANGUAGE = Language(
    name="crystal",
    extensions=(".cr",),
    ids=("crystal",),
    line_comments=(HASH,),
    strings=(DOUBLE_OVER_LINES, BACKTICK, Quotes("%(", ")"), Quotes("'", is_character=True)),
    documentation=("#",),
    words=Words(
        opens={"end": rf"(?:^|= )(?:{BLOCK})\b(?!.*\bend\b)|\bdo(?: \|[^|\n]*\|)?\Z"},
        ends=("end",),
        branches=("else ", "elsif ", "when ", "rescue ", "ensure "),
    ),
    comma_goes_on=True,
)
