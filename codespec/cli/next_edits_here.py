"""Next edits in a document, as far as settings and rules decide about them."""

from __future__ import annotations

import msgspec

from codespec.config import Settings
from codespec.engine.editable_texts import EditableTexts
from codespec.next_edit import BARS, NextEditRequest, NoNextEdit
from codespec.requests import CompletionRequest
from codespec.rules.open_files import OpenFileRules


class NextEditsHere(msgspec.Struct, frozen=True, kw_only=True):
    """Next edits of editors in this document. why_not: why there are none, "" where they come after
    changes. bar: least probability of one that is shown. where: how far away, see `EditRestraint`.
    """

    why_not: str
    bar: float
    where: str

    @property
    def words(self) -> str:
        """The same for people."""
        if self.why_not:
            return f"none: {self.why_not}"
        places = {"workspace": "in the workspace", "file": "in the file", "line": "in its line"}
        return f"after changes, {places[self.where]}, where at least {self.bar} likely"


def next_edits_here(request: CompletionRequest, settings: Settings) -> NextEditsHere:
    """request: of the document."""
    rules = OpenFileRules(settings.index.exclude)
    asked = rules.ruling(request.path, request.workspace, request.language_id).edits
    limits = settings.edits.restrained(asked)
    why = "" if limits.enabled else "edits.enabled is off"
    if not why and request.language_id in settings.completion.disabled_languages:
        why = f"switched off for {request.language_id} in the settings"
    if not why and not request.path:
        why = NoNextEdit.NO_FILE.text
    if not why:
        texts = EditableTexts(lambda workspace: None, settings.index.exclude)
        of_document = NextEditRequest(
            request.prefix + request.suffix,
            len(request.prefix),
            request.path,
            request.workspace,
            request.language_id,
        )
        why = texts.why_not(of_document)
    return NextEditsHere(why_not=why, bar=BARS[limits.eagerness], where=limits.where)
