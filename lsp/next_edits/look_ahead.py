"""The next edit looked for before the editor asks: after a change it waits a while, and then asks
about the document as it was all along."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from codespec.next_edit import NextEditRequest, NextEdits

SOON_S = 0.03
"""Seconds from a change until its next edit is looked for: a suggestion is asked for at once and
goes first, and plug-ins ask for the next edit after 60 ms."""
MAX_UNUSED = 4
"""Answers in a row that nobody asked for. After these none is looked for until the editor asks."""
FRESH_S = 2.0
"""Seconds from a question for which its answer holds: files may change unseen."""


class _Ahead(NamedTuple):
    """A question that is asked already. began: on the monotonic clock. anywhere: its answer holds
    wherever the cursor is."""

    request: NextEditRequest
    anywhere: bool
    began: float
    answer: asyncio.Task[NextEdits]

    def answers(self, asked: NextEditRequest) -> bool:
        """True if the answer is that to `asked`, too."""
        ours = self.request
        is_same = replace(ours, cursor=asked.cursor) == asked
        is_fresh = time.monotonic() - self.began < FRESH_S
        return is_fresh and is_same and (self.anywhere or _line_of(ours) == _line_of(asked))


class LookAhead:
    """One question at a time, of one editor window, on one event loop."""

    def __init__(self, find: Callable[[NextEditRequest], Awaitable[NextEdits]]) -> None:
        """find: asks the daemon."""
        self._find = find
        self._ahead: _Ahead | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._n_unused = MAX_UNUSED  # until the editor asks

    async def find(self, request: NextEditRequest) -> NextEdits:
        """The answer to an editor's question, asked already or not."""
        self._n_unused = 0
        ahead = self._ahead
        if ahead is not None and ahead.answers(request):
            self._ahead = None
            return await ahead.answer
        self.drop()
        return await self._find(request)

    def begin(self, request: NextEditRequest, *, anywhere: bool = False) -> None:
        """Ask a question now. anywhere: the cursor may be elsewhere when the editor asks it."""
        self.drop()
        answer = asyncio.ensure_future(self._find(request))
        self._ahead = _Ahead(request, anywhere, time.monotonic(), answer)

    def begin_soon(self, question: Callable[[], NextEditRequest | None]) -> None:
        """A document changed: ask what `question` gives after `SOON_S`, unless another change comes
        before; None for nothing."""
        self.drop()
        if self._n_unused < MAX_UNUSED:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(SOON_S, self._begin_unasked, question)

    def _begin_unasked(self, question: Callable[[], NextEditRequest | None]) -> None:
        request = question()
        if request is not None:
            self._n_unused += 1
            self.begin(request)

    def drop(self) -> None:
        """Forget what is looked for, or about to be."""
        if self._timer is not None:
            self._timer.cancel()
        if self._ahead is not None:
            self._ahead.answer.cancel()
        self._timer = self._ahead = None

    async def close(self) -> None:
        """End what runs."""
        ahead = self._ahead
        self.drop()
        if ahead is not None:
            await asyncio.gather(ahead.answer, return_exceptions=True)


def _line_of(request: NextEditRequest) -> int:
    return request.text.count("\n", 0, request.cursor)
