"""$/progress: work that the editor shows while it lasts: loading the model, indexing a folder."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer


class Work:
    """One piece of work: it begins with the first report, and can begin again after its end.
    Editors that show no progress are not told."""

    def __init__(self, server: LanguageServer, token: str, title: str) -> None:
        self._server = server
        self._token = token
        self._title = title
        self._n_begun = 0
        self._latest: tuple[float, str] | None = None
        self._showing: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    def report(self, share: float, message: str = "") -> None:
        """The share of the work that is done, 0 to 1."""
        window = self._server.client_capabilities.window
        if window is None or not window.work_done_progress:
            return
        self._latest = (share, message)
        self._news.set()
        if self._showing is None:
            self._showing = asyncio.ensure_future(self._show())

    def end(self) -> None:
        """The work is done."""
        self._latest = None
        self._news.set()

    def close(self) -> None:
        """Nothing is told from now on."""
        if self._showing is not None:
            self._showing.cancel()

    async def _show(self) -> None:
        self._n_begun += 1
        token = f"{self._token}/{self._n_begun}"
        progress = self._server.work_done_progress
        share, message = self._latest or (0.0, "")
        with contextlib.suppress(JsonRpcException, BrokenPipeError):
            try:
                await progress.create_async(token)
                begun = types.WorkDoneProgressBegin(
                    self._title, message=message, percentage=_percentage(share)
                )
                progress.begin(token, begun)
                while self._latest is not None:
                    share, message = self._latest
                    report = types.WorkDoneProgressReport(
                        message=message, percentage=_percentage(share)
                    )
                    progress.report(token, report)
                    self._news.clear()
                    await self._news.wait()
                progress.end(token, types.WorkDoneProgressEnd())
            finally:
                self._showing = None


def _percentage(share: float) -> int:
    return round(100 * min(max(share, 0.0), 1.0))
