"""The histories of the workspaces' documents, shared by all that see these documents."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView

from codespec.documents.edit_history import EditHistory

MAX_WORKSPACES = 8
"""Workspaces whose histories are kept; those asked about least recently are dropped."""


class EditHistories:
    """Histories by workspace folder, "" for documents of none. One thread only."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, EditHistory] = OrderedDict()

    def of(self, workspace: str) -> EditHistory:
        """That of a workspace."""
        history = self._known.pop(workspace, None) or EditHistory()
        self._known[workspace] = history
        if len(self._known) > MAX_WORKSPACES:
            self._known.popitem(last=False)
        return history

    def get(self, workspace: str) -> EditHistory | None:
        """That of a workspace, None where no document was seen."""
        return self._known.get(workspace)

    def items(self) -> ItemsView[str, EditHistory]:
        """All of them, by workspace."""
        return self._known.items()

    def forget(self, path: str) -> bool:
        """Forget a document in all of them. Returns: True if there were any changes or lost
        lines."""
        forgot = [history.forget(path) for history in self._known.values()]
        return any(forgot)
