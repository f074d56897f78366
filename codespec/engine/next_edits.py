"""Next edits: from a moment in a document to edits that follow from what was changed lately."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from codespec.documents.edit_histories import EditHistories
from codespec.documents.edit_history import EditHistory
from codespec.edit import Edit
from codespec.edits.base import CursorLine, LineChange, LineEdit, Proposer
from codespec.edits.dismissals import AnyDismissed, Dismissals, DismissedEdit, DismissedPlace
from codespec.edits.learned_odds import LearnedOdds
from codespec.edits.proposal_outcomes import ProposalOutcomes
from codespec.edits.repeats import Repeats
from codespec.engine.editable_texts import EditableTexts, WorkspaceTexts
from codespec.index.file_words import read_text
from codespec.index.reader import WorkspaceIndex
from codespec.next_edit import Dismissed, NextEdit, NextEditRequest, NextEdits, NoNextEdit
from codespec.system import folders
from codespec.system.files import state_of

_READ_S = 0.01
"""Seconds that a request reads files of its workspace whose words are not known yet."""


@dataclass(frozen=True, slots=True)
class EditMoment:
    """A request for next edits, with what they may follow from.

    changes: those of the workspace, oldest first. texts: in which edits may be made.
    """

    request: NextEditRequest
    changes: Sequence[LineChange]
    texts: WorkspaceTexts
    cursor: CursorLine
    dismissed: Collection[AnyDismissed]

    def wanted(self, found: Sequence[LineEdit]) -> list[LineEdit]:
        """Those of edits that were found which the request asks for, in the same order."""
        likely = [edit for edit in self._near(found) if edit.chance >= self.request.bar]
        dismissed = Dismissals(self.dismissed)
        return [e for e in likely if not dismissed or not dismissed.has(*self._placed(e))]

    def _placed(self, edit: LineEdit) -> tuple[DismissedEdit, Sequence[str], int]:
        lines = (self.texts.text_of(edit.path) or "").split("\n")
        return (edit.path, edit.old, edit.new), lines, edit.line

    def _near(self, found: Sequence[LineEdit]) -> list[LineEdit]:
        return [edit for edit in found if _is_in_reach(edit, self.cursor, self.request)]

    def chosen(self, found: Sequence[LineEdit]) -> NextEdits:
        """The answer, of edits that were found, best first."""
        request, near, wanted = self.request, self._near(found), self.wanted(found)
        if not wanted:
            still = any(d.old in (self.texts.text_of(d.path) or "") for d in request.dismissed)
            is_unsure = near and all(edit.chance < request.bar for edit in near)
            why_none = NoNextEdit.NOT_SURE if is_unsure else NoNextEdit.NO_PLACE
            return NextEdits(why=NoNextEdit.DISMISSED if still else why_none)
        made = (as_next_edit(edit, self.texts, request) for edit in wanted)
        edits = tuple(islice((edit for edit in made if edit is not None), request.n_most))
        n_left = sum(edit.kind == edits[0].kind for edit in wanted) if edits else 0
        return NextEdits(edits, None if edits else NoNextEdit.NO_PLACE, n_left=n_left)


class NextEditFinder:
    """Finds next edits. One thread only."""

    def __init__(
        self,
        texts: EditableTexts,
        proposer: Proposer,
        learned: LearnedOdds | None = None,
        histories: EditHistories | None = None,
    ) -> None:
        """learned: corrections of what proposals are said to be worth; None: they end with the
        process. histories: told of the documents; None for some of their own."""
        self._texts = texts
        self._proposer = proposer
        self._learned = learned or LearnedOdds()
        self._outcomes = ProposalOutcomes(self._learned)
        self._histories = histories or EditHistories()

    def find(
        self, request: NextEditRequest, cancelled: Callable[[], bool] = lambda: False
    ) -> NextEdits:
        """See `requests.EditFinder`."""
        started = time.perf_counter()
        found = self._find(request, cancelled)
        return replace(found, ms=(time.perf_counter() - started) * 1e3)

    def closed(self, path: str) -> None:
        """A document is no longer open: what was changed in it is not repeated any more."""
        self._texts.forget(path)
        self._outcomes.forget(path)
        for _, history in self._histories.items():
            history.closed(path)

    def forget(self, path: str) -> None:
        """Close a document, and keep nothing of it."""
        self.closed(path)
        self._histories.forget(path)

    def outcomes(self) -> tuple[int, int]:
        """See `ProposalOutcomes.news`."""
        return self._outcomes.news()

    def save(self) -> None:
        """Keep what was learned of proposals."""
        self._learned.save()

    def idle(self) -> bool:
        """Read some of the workspaces' files. Returns: True while there is more."""
        return self._texts.read_some()

    def _find(self, request: NextEditRequest, cancelled: Callable[[], bool]) -> NextEdits:
        moment = self.moment(request)
        if isinstance(moment, NextEdits):
            return moment
        self._read_ahead()
        if cancelled():
            return NextEdits(why=NoNextEdit.CANCELLED)
        asked = moment.changes, moment.texts, moment.cursor, moment.dismissed
        return self.answer(moment, self._proposer.propose(*asked))

    def answer(
        self, moment: EditMoment, proposed: Sequence[LineEdit], in_order: bool = False
    ) -> NextEdits:
        """The answer, of edits that were proposed; their chances are corrected by what became of
        earlier ones of their kind, and what becomes of the first is remembered.

        in_order: True to keep their order; False for the likeliest first.
        """
        workspace = moment.request.workspace
        found = self._learned.corrected(workspace, proposed)
        said = {(edit.path, edit.line, edit.new): edit for edit in proposed}
        if in_order:
            order = {place: i for i, place in enumerate(said)}
            found.sort(key=lambda edit: order[edit.path, edit.line, edit.new])
        for first in moment.wanted(found)[:1]:
            self._outcomes.proposed(workspace, said[first.path, first.line, first.new])
        return moment.chosen(found)

    def moment(self, request: NextEditRequest) -> EditMoment | NextEdits:
        """The moment of a request, whose document is taken over; or the answer that there are no
        edits."""
        if not request.path:
            return NextEdits(why=NoNextEdit.NO_FILE)
        if why := self._texts.why_not(request):
            self.forget(request.path)
            return NextEdits(why=NoNextEdit.EXCLUDED, detail=why)
        history = self._told(request)
        shown = self._texts.may_show(history.paths, request.workspace)
        for path in history.paths - shown:
            history.forget(path)
        changes = history.changes()
        if not request.workspace:
            changes = [change for change in changes if change.path == request.path]
        if not changes:
            return NextEdits(why=NoNextEdit.NOTHING_EDITED)
        cursor = CursorLine(request.path, request.text.count("\n", 0, request.cursor))
        dismissed = {_place_of(each) for each in request.dismissed}
        self._outcomes.seen(request.workspace, changes, Dismissals(dismissed).edits)
        return EditMoment(request, changes, self._texts.of(request), cursor, dismissed)

    def _told(self, request: NextEditRequest) -> EditHistory:
        """The history that the request's document belongs to, told of its text. A document that was
        not seen before counts as changed from its file; one whose file was changed to this text
        starts anew but for what the user had typed: that was a formatter, or another program."""
        path = request.path
        history = self._histories.of(request.workspace)
        before = self._texts.update(request)
        if before is not None and before.workspace == request.workspace:
            known = history.text(path)
            old = before.text if known is None else known
            is_from_disk = before.file != state_of(path)
        else:
            old, is_from_disk = read_text(path), False
        if old is not None and old != request.text:
            is_from_disk = is_from_disk and read_text(path) == request.text
        history.told(path, request.text, old, on_disk=is_from_disk)
        return history

    def _read_ahead(self) -> None:
        until = time.perf_counter() + _READ_S
        while time.perf_counter() < until and self._texts.read_some():
            pass


def lookups(
    exclude: Sequence[str],
    index_of: Callable[[str], WorkspaceIndex | None],
    proposer: Proposer | None = None,
    histories: EditHistories | None = None,
) -> NextEditFinder:
    """A finder of edits that are made again elsewhere, which needs no model. exclude: patterns of
    files that the user's settings exclude. index_of: gives that of a workspace folder. proposer:
    another one in place of `Repeats`."""
    learned = LearnedOdds(folders.cache_path() / "edits")
    texts = EditableTexts(index_of, exclude)
    return NextEditFinder(texts, proposer or Repeats(), learned, histories)


def as_next_edit(
    edit: LineEdit, texts: WorkspaceTexts, request: NextEditRequest
) -> NextEdit | None:
    """A proposal as an edit of characters; None where its old lines do not stand there."""
    text = texts.text_of(edit.path)
    if text is None:
        return None
    lines = text.split("\n")
    last = edit.line + len(edit.old)
    if not 0 <= edit.line <= len(lines) or tuple(lines[edit.line : last]) != edit.old:
        return None
    start, end, new = _range_of(edit, lines)
    document, version = edit.path, -1
    if edit.path == request.path:
        document, version = request.document or edit.path, request.version
    return NextEdit(
        Edit(document, version, start, end, new),
        edit.path,
        text[start:end],
        edit.line,
        edit.chance,
        edit.kind,
    )


def _range_of(edit: LineEdit, lines: Sequence[str]) -> tuple[int, int, str]:
    """(start, end, new text) of an edit of lines, in characters."""
    last = edit.line + len(edit.old)
    start = sum(map(len, lines[: edit.line])) + edit.line
    end = start + sum(map(len, edit.old)) + len(edit.old)
    n_chars = sum(map(len, lines)) + len(lines) - 1
    new = "\n".join(edit.new)
    if edit.old and edit.new:
        return start, end - 1, new
    if last < len(lines):  # whole lines, with their ends
        return start, end, f"{new}\n" if edit.new else ""
    if edit.new:
        return n_chars, n_chars, f"\n{new}"
    return max(0, start - 1), n_chars, ""


def _place_of(edit: Dismissed) -> AnyDismissed:
    old, new = _lines_of(edit)
    if not (edit.above or edit.below):
        return edit.path, old, new
    return DismissedPlace(edit.path, old, new, edit.above, edit.below)


def _lines_of(edit: Dismissed) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(old, new) lines of an edit of characters, as `_range_of` made them."""
    old, new = edit.old, edit.text
    if not new and old.endswith("\n"):
        return tuple(old[:-1].split("\n")), ()
    if not new and old.startswith("\n"):
        return tuple(old[1:].split("\n")), ()
    if not old and new.endswith("\n"):
        return (), tuple(new[:-1].split("\n"))
    if not old and new.startswith("\n"):
        return (), tuple(new[1:].split("\n"))
    return tuple(old.split("\n")), tuple(new.split("\n"))


def _is_in_reach(edit: LineEdit, cursor: CursorLine, request: NextEditRequest) -> bool:
    if request.where == "workspace":
        return True
    is_here = edit.path == cursor.path
    if request.where == "file":
        return is_here
    return is_here and edit.line <= cursor.line < edit.line + max(1, len(edit.old))
