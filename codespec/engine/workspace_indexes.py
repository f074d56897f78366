"""The indexes of the workspaces that an engine was asked about."""

from __future__ import annotations

import os
from pathlib import Path

from codespec.index.reader import WorkspaceIndex
from codespec.index.upkeep import all_status
from codespec.native import MAX_DEPTH
from codespec.requests import CompletionRequest
from codespec.types import Tokens


class WorkspaceIndexes:
    """Opened indexes by workspace. One thread only. tokenizer_hash: of the tokens they hold; None
    for any, for what does not depend on them: of several, the one that was used last."""

    def __init__(self, tokenizer_hash: str | None) -> None:
        self._tokenizer_hash = tokenizer_hash
        self._open: dict[str, WorkspaceIndex] = {}

    def get(self, workspace: str) -> WorkspaceIndex | None:
        """The index in the cache folder, of its newest generation; None for none."""
        index = self._open.get(workspace)
        if index is None:
            index = self._found(workspace)
            if index is not None:
                self._open[workspace] = index
            return index
        index.refresh()
        return index

    def _found(self, workspace: str) -> WorkspaceIndex | None:
        if self._tokenizer_hash is not None:
            return WorkspaceIndex.open(Path(workspace), self._tokenizer_hash)
        sound = (known for known in all_status(os.path.realpath(workspace)) if known.is_sound)
        opened = (WorkspaceIndex.open(Path(workspace), known.tokenizer) for known in sound)
        return next((index for index in opened if index is not None), None)

    def in_use(self, workspace: str) -> WorkspaceIndex | None:
        """The index as it is: a newer generation of it waits for the next request."""
        return self._open.get(workspace) or (self.get(workspace) if workspace else None)

    def file_with(self, tokens: Tokens, request: CompletionRequest) -> str:
        """The indexed file with the longest match of the end of `tokens` that has text after it; ""
        for none."""
        index = self.get(request.workspace) if request.workspace else None
        if index is None:
            return ""
        place = index.locate(index.find(tokens[-MAX_DEPTH:], 1, (request.path,)))
        return str(Path(index.root, place.path)) if place is not None and place.path else ""

    def check_some(self) -> bool:
        """Check a part of one of them. Returns True while there is more."""
        return any(index.check_some() for index in self._open.values())
