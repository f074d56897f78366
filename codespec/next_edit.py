"""Next edits, from the proposers to the editors: changes that follow from what was changed just
now. No numpy here: language servers start without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from codespec import limits
from codespec.edit import Edit
from codespec.limits import Count, Integer, Milliseconds, Name, PathText, Text, at_most
from codespec.reasons import Reason
from codespec.restraint import Where

BARS = {"high": 0.4, "medium": 0.7, "low": 0.8}
"""Least probability of an edit that is proposed, by `edits.eagerness`."""


class NoNextEdit(Reason):
    """Cause of an answer without a next edit."""

    EXCLUDED = "excluded", "rules exclude the file"
    NO_FILE = "no_file", "the document is no file yet"
    NOTHING_EDITED = "nothing_edited", "nothing was edited lately that could be repeated"
    NO_PLACE = "no_place", "no other place is like those that were edited"
    NOT_SURE = "not_sure", "no place is likely enough to want the edit (edits.eagerness)"
    DISMISSED = "dismissed", "the likely ones were dismissed"
    NO_TIME = "no_time", "the deadline passed before an edit was found"
    LOADING = "loading", "the next-edit model is being loaded"
    NO_MODEL = "no_model", "edits.model names no next-edit model"
    NO_WINDOW = "no_window", "the lines here are none that a model is asked to rewrite"
    NOTHING_TO_CHANGE = "nothing_to_change", "the model changes nothing here"
    CANCELLED = "cancelled", "it is not wanted any more"
    FAILED = "failed", "the daemon cannot answer"


@dataclass(frozen=True, slots=True)
class Dismissed:
    """An edit that the user did not want: it is not proposed again while its old text stands.

    above, below: the nearest lines with a word in them, without the white space around them: it is
        not wanted there. "" for none; both "": it is not wanted anywhere in the document.
    """

    path: PathText
    old: Text
    text: Text
    above: Text = ""
    below: Text = ""


@dataclass(frozen=True, slots=True)
class NextEditRequest:
    """One moment in one document, after a change.

    text: all of the document, \\n line ends. cursor: a character of it.
    bar: least probability that an edit is right, 0 to 1; below it nothing is proposed.
    n_most: most edits of the answer.
    dismissed: edits that are not to be proposed.
    """

    text: Text
    cursor: limits.Offset
    path: PathText = ""  # absolute, "" for an untitled document
    workspace: PathText = ""  # absolute folder, "" for none
    language_id: Name = ""
    document: limits.Uri = ""  # what edits of this document are to call it; "": the path
    version: Integer = 0
    bar: limits.Share = 0.5
    where: Where = "workspace"
    n_most: Count = 1
    dismissed: Annotated[tuple[Dismissed, ...], at_most(limits.FILES)] = ()
    deadline_ms: Milliseconds = 0.0


@dataclass(frozen=True, slots=True)
class NextEdit:
    """A proposed edit.

    edit: offsets are characters of the document's text with \\n line ends. `document` is the
        request's, with its version, or the absolute path of another file, with version -1.
    old: the text that is replaced; the edit is made only where it still stands.
    line: its first line, from 0.
    chance: calibrated probability that it is right, 0 to 1.
    kind: how it was found, the `kind` of an `edits.pattern.Pattern`; "model" of a next-edit model.
    """

    edit: Edit
    path: PathText
    old: Text
    line: Count
    chance: float
    kind: Name


@dataclass(frozen=True, slots=True)
class NextEdits:
    """The answer: edits, best first, none for a reason. detail: longer text of that reason, for
    people; "" for none. n_left: how many places of the first
    edit's kind are still to be changed, itself included."""

    edits: tuple[NextEdit, ...] = ()
    why: NoNextEdit | None = None
    detail: str = ""
    n_left: int = 0
    ms: float = 0.0

    @property
    def reason(self) -> str:
        """Cause of an answer without edits, for people; "" where there are some."""
        return self.detail or (self.why.text if self.why else "")
