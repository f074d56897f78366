"""One editor's completions: from a snapshot of a document to text to insert. No LSP types."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codespec.config import Settings
from codespec.daemon.address import Transport
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.wire import StateChanged
from codespec.types import Completion, CompletionRequest, SamplingParams

from .documents import Snapshot

# More than any prompt takes; the rest serves lookups. What is sent is tokenised each time.
MAX_PREFIX_CHARS = 48_000
MAX_SUFFIX_CHARS = 12_000
# Of the deadline, for our own way back to the editor.
_MARGIN_MS = 5.0


class Session:
    """On one event loop."""

    def __init__(
        self,
        settings: Settings,
        on_state: Callable[[StateChanged], None],
        transport: Transport | None = None,
    ) -> None:
        self.settings = settings
        self._client = AsyncClient(settings, on_state, transport)

    def start(self) -> None:
        """Begin to start or join the daemon."""
        self._client.connect()

    async def complete(
        self, snapshot: Snapshot, path: str, workspace: str, invoked: bool
    ) -> Completion:
        """Within the deadline of the settings, empty if need be, and at once when a newer request
        for the document comes (the daemon sees to that). `path` and `workspace`: absolute or "".
        `invoked`: the user asked, and waits longer.
        """
        limits = self.settings.completion
        deadline_ms = limits.deadline_invoked_ms if invoked else limits.deadline_auto_ms
        request = CompletionRequest(
            prefix=snapshot.prefix,
            suffix=snapshot.suffix,
            path=path,
            workspace=workspace,
            language_id=snapshot.language_id,
            doc_version=snapshot.version,
            max_tokens=limits.max_tokens,
            deadline_ms=max(1.0, deadline_ms - _MARGIN_MS),
            sampling=SamplingParams(temperature=limits.temperature),
        )
        return await self._client.complete(request, snapshot.uri)

    async def close(self) -> None:
        await self._client.close()


def workspace_of(path: str, folders: list[str]) -> str:
    """The innermost of `folders` that `path` is in; for a document without a path, the only one;
    otherwise ""."""
    if not path:
        return folders[0] if len(folders) == 1 else ""
    inside = [folder for folder in folders if Path(path).is_relative_to(folder)]
    return max(inside, key=len, default="")
