"""Whether a suggestion is welcome: places where one would be in the way.

Only for suggestions that nobody asked for, and only before the model is asked: what was suggested
already goes on being shown. Each rule is a sentence, for traces and `codespec explain`.
"""

from __future__ import annotations

import re

_COMMENT = ("#", "//", "/*", "* ", "--", "<!--")
# Closing brackets and quotes, then what ends or opens a statement, the end of a comment.
_END_OF_LINE = re.compile(r"[)\]}>\"'`]*[:;,{]*(?:\*/|-->)?")


BELOW = "below a line that is whole"
"""The kind of a suggestion that begins there, which is not known before it is made."""


def kind_of_place(prefix: str, suffix: str) -> str:
    """Where suggestions may be liked more or less, in words that follow "suggestions"."""
    line = prefix[prefix.rfind("\n") + 1 :].strip()
    if line.startswith(_COMMENT):
        return "in comments"
    if suffix.split("\n", 1)[0].strip():
        return "before closing punctuation"
    return "within a line" if line else "on empty lines"


def why_unwelcome(suffix: str, after_deletion: bool = False) -> str:
    """The rule against suggesting anything here; "" where there is none."""
    line = suffix.split("\n", 1)[0]
    if line[:1].isalnum() or line[:1] == "_":
        return "a word goes on right after the cursor"
    # Without blanks no two parts of the pattern match the same, so it takes linear time.
    if not _END_OF_LINE.fullmatch("".join(line.split())):
        return "more than closing punctuation stands after the cursor"
    if after_deletion:
        return "text was deleted just now"
    return ""
