"""Why a file or language is none of our business: a rule, and what it says about this one."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.errors import without_controls
from codespec.reasons import Reason

_MAX_TEXT = 300
"""Most characters of a text, which may quote a repository's."""


class ExclusionRule(Reason):
    """Kind of rule that excludes a file; what it says about one stands at the `{}` of its text."""

    IGNORED = "ignored", "ignored by {}"
    EXCLUDED = "excluded", "excluded by {}"
    SECRET_NAME = "secret_name", "a file that holds secrets by its name"
    SECRET_FOLDER = "secret_folder", "in a folder that holds secrets: {}"
    TOOL_FOLDER = "tool_folder", "in a folder that is never indexed: {}"
    CACHE_FOLDER = "cache_folder", "in a virtual environment or cache: {}"
    OUTSIDE = "outside", "outside the workspace"
    TOO_DEEP = "too_deep", "more than {} folders deep"
    PATH_TOO_LONG = "path_too_long", "a file whose path has more than {} characters"
    RESTRICTED = "restricted", "{}"
    LANGUAGE_OFF = "language_off", "switched off for {}"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A rule that excludes a file. detail: what stands at the `{}` of its text."""

    rule: ExclusionRule
    detail: str = ""

    @property
    def text(self) -> str:
        """The reason as one line for a status or a terminal, at most `_MAX_TEXT` characters and
        one more."""
        text = self.rule.text.replace("{}", self.detail[: 2 * _MAX_TEXT])
        text = without_controls(text)
        return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def text_of(exclusion: Exclusion | None) -> str:
    """The text of an exclusion; "" for none."""
    return exclusion.text if exclusion else ""
