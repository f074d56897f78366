"""The rule that keeps a suggestion away which nobody asked for, by the text around the cursor."""

from __future__ import annotations

from codespec.languages.registry import record_at
from codespec.restraint import Restrained, Restraint, why_restrained
from codespec.syntax.closers import behind_closers
from codespec.syntax.text_kind import text_kind
from codespec.usage.suppression import Suppression, why_suppressed


def why_not_here(
    by: Restraint,
    prefix: str,
    suffix: str,
    path: str,
    language_id: str = "",
    after_deletion: bool = False,
) -> Restrained | Suppression | None:
    """The wish of the user that rules out a suggestion here, or the rule for places where one
    would be in the way; None where neither does.

    path: of the document, or its name. language_id: as of LSP, where the path does not tell the
    language. after_deletion: text was deleted here just now.
    """
    why = why_restrained(by, lambda: text_kind(prefix, suffix, path, language_id))
    if why is not None:
        return why
    line, rest = prefix[prefix.rfind("\n") + 1 :], suffix.split("\n", 1)[0]
    behind = behind_closers(line, rest, record_at(path, language_id))
    return why_suppressed(rest, behind, after_deletion)
