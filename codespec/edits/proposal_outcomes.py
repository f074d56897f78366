"""Finds out what became of proposals: made by the user, by accepting them or by hand, or
dismissed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from codespec.documents.edit_history import LineChange
from codespec.edits.base import LineEdit
from codespec.edits.dismissals import DismissedEdit
from codespec.edits.learned_odds import MAX_WORKSPACES, LearnedOdds

MAX_WAITING = 16
"""Proposals of one workspace whose outcome is waited for; of older ones nothing is learned."""


class _Waiting(NamedTuple):
    """A proposal whose outcome is waited for. was_dismissed: it may be made after all."""

    kind: str
    chance: float
    was_dismissed: bool = False


class ProposalOutcomes:
    """Waits for the outcome of what was proposed, and teaches `LearnedOdds`. One thread only."""

    def __init__(self, learned: LearnedOdds) -> None:
        self._learned = learned
        self._waiting: dict[str, dict[DismissedEdit, _Waiting]] = {}
        self._news = 0, 0

    def proposed(self, workspace: str, edit: LineEdit) -> None:
        """Wait for the outcome of an edit, whose probability was not corrected."""
        waiting = self._waiting.setdefault(workspace, {})
        waiting.setdefault((edit.path, edit.old, edit.new), _Waiting(edit.kind, edit.chance))
        if len(waiting) > MAX_WAITING:
            del waiting[next(iter(waiting))]
        if len(self._waiting) > MAX_WORKSPACES:
            del self._waiting[next(iter(self._waiting))]

    def seen(
        self,
        workspace: str,
        changes: Sequence[LineChange],
        dismissed: Collection[DismissedEdit],
    ) -> None:
        """Learn from the changes and dismissals up to now. What was dismissed and is made after all
        counts as made."""
        waiting = self._waiting.get(workspace, {})
        for edit, (kind, chance, was_dismissed) in list(waiting.items()):
            is_made = any(_makes(change, edit) for change in changes)
            if is_made:
                del waiting[edit]
            if is_made and was_dismissed:
                self._learned.made_after_all(workspace, kind)
            elif is_made or (edit in dismissed and not was_dismissed):
                self._learned.learn(workspace, kind, chance, is_made)
            else:
                continue
            n_made, n_dismissed = self._news
            self._news = n_made + is_made, n_dismissed + (not is_made)
            if not is_made:
                waiting[edit] = _Waiting(kind, chance, True)

    def news(self) -> tuple[int, int]:
        """(made, dismissed): how many proposals were found to be the one or the other since this
        was called last."""
        news, self._news = self._news, (0, 0)
        return news

    def forget(self, path: str) -> None:
        """Wait for nothing in a document any more."""
        for waiting in self._waiting.values():
            for edit in [edit for edit in waiting if edit[0] == path]:
                del waiting[edit]


def _makes(change: LineChange, edit: DismissedEdit) -> bool:
    """True if a change is an edit, or what both of them and their neighbours became."""
    path, old, new = edit
    return change.path == path and _has(change.old, old) and _has(change.new, new)


def _has(lines: Sequence[str], run: Sequence[str]) -> bool:
    n = len(run)
    return any(lines[i : i + n] == run for i in range(len(lines) - n + 1))
