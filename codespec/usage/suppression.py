"""Kinds of places, and rules that suppress unasked suggestions where one would be in the way.

The rules hold only before the model is asked: a suggestion that is shown already stays.
"""

from __future__ import annotations

import re

from codespec.reasons import Reason

_COMMENT = ("#", "//", "/*", "* ", "--", "<!--")
# Closing brackets and quotes, then what ends or opens a statement, the end of a comment.
_END_OF_LINE = re.compile(r"[)\]}>\"'`]*[:;,.{]*(?:\*/|-->)?")


class PlaceKind(Reason):
    """Kind of place, by which acceptance is counted; its key is that of a habit in the statistics
    database. `text` follows the word "suggestions".

    BELOW: known only once the suggestion is made, which begins below a complete line.
    """

    COMMENT = "comment", "in comments"
    BEFORE_CLOSING = "before_closing", "before closing punctuation"
    WITHIN_LINE = "within_line", "within a line"
    EMPTY_LINE = "empty_line", "on empty lines"
    BELOW = "below", "below a line that is whole"


class Suppression(Reason):
    """Rule that suppresses an unasked suggestion."""

    IN_WORD = "in_word", "a word goes on right after the cursor"
    BEFORE_TEXT = "before_text", "more than closing punctuation stands after the cursor"
    AFTER_DELETION = "after_deletion", "text was deleted just now"


def kind_of_place(prefix: str, suffix: str) -> PlaceKind:
    """Kind of the cursor's place, by the text of its line."""
    line = prefix[prefix.rfind("\n") + 1 :].strip()
    if line.startswith(_COMMENT):
        return PlaceKind.COMMENT
    if suffix.split("\n", 1)[0].strip():
        return PlaceKind.BEFORE_CLOSING
    return PlaceKind.WITHIN_LINE if line else PlaceKind.EMPTY_LINE


def why_suppressed(rest: str, behind: str, after_deletion: bool = False) -> Suppression | None:
    """The rule that suppresses any suggestion here; None if there is none.

    rest: the cursor's line after it. behind: what is left of it behind all that it closes.
    """
    # Without blanks no two parts of the pattern match the same, so it takes linear time.
    if not _END_OF_LINE.fullmatch("".join(behind.split())):
        in_word = rest[:1].isalnum() or rest[:1] == "_"
        return Suppression.IN_WORD if in_word else Suppression.BEFORE_TEXT
    return Suppression.AFTER_DELETION if after_deletion else None
