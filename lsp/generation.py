"""A suggestion while the model is at it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from codespec.requests import Completion, OnProgress, Progress
from codespec.types import Trace

from .documents import Snapshot
from .suggestions import Suggestion, Suggestions, rest_of

Complete: TypeAlias = Callable[[OnProgress], Awaitable[Completion]]
"""Has the model say it, and tells how far it is."""


class Generation:
    """Of one suggestion, which it adds to those that are kept, until the model has said all, or
    `end`. `on_end`: told of what it came to, also where nobody wants that any more. `on_more`: of
    each line that was finished."""

    def __init__(
        self,
        suggestion: Suggestion,
        suggestions: Suggestions,
        complete: Complete,
        on_end: Callable[[Completion], None],
        on_more: Callable[[Suggestion], None],
    ) -> None:
        self.suggestion = suggestion
        self._suggestions = suggestions
        self._on_more = on_more
        self._line: asyncio.Future[None] | None = None
        suggestions.add(suggestion)
        self._task = asyncio.ensure_future(self._run(complete, on_end))

    @property
    def is_running(self) -> bool:
        return not self.suggestion.done

    async def wait(
        self, now: Snapshot, turn: asyncio.Future[None], all_s: float, line_s: float | None
    ) -> None:
        """Until a request's turn is over, but no longer than `all_s` for all of it; where nothing
        of it fits `now` by then, until something does, or for `line_s`. None: while it lingers."""
        loop, first = asyncio.get_running_loop(), asyncio.FIRST_COMPLETED
        ends, until = {self._task, turn}, None if line_s is None else loop.time() + line_s
        done, _ = await asyncio.wait(ends, timeout=all_s, return_when=first)
        while not done:
            rest = rest_of(self.suggestion, now)
            left_s = None if until is None else until - loop.time()
            if (rest is not None and rest.edits) or (left_s is not None and left_s <= 0):
                break
            self._line = loop.create_future()
            done, _ = await asyncio.wait({*ends, self._line}, timeout=left_s, return_when=first)
            done.discard(self._line)

    def end(self) -> None:
        """What was said by now is the suggestion."""
        self._task.cancel()
        if self.is_running:
            reason = "the text changed, or a newer request came"
            self._settle(Completion(finish="cancelled", reason=reason))

    async def _run(self, complete: Complete, on_end: Callable[[Completion], None]) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            completion = await complete(self._heard)
        except asyncio.CancelledError:
            on_end(Completion(finish="cancelled", trace=Trace(ms=(loop.time() - started) * 1e3)))
            raise
        on_end(completion)
        if self.is_running:
            self._settle(completion)

    def _heard(self, progress: Progress) -> None:
        suggestion = self.suggestion
        if len(progress.text) < len(suggestion.text) and suggestion.text.startswith(progress.text):
            return  # known from one that was cut short
        has_more = progress.lines != suggestion.lines
        suggestion.text, suggestion.lines = progress.text, progress.lines
        if has_more and self._line is not None and not self._line.done():
            self._line.set_result(None)
        if has_more:
            self._on_more(suggestion)

    def _settle(self, completion: Completion) -> None:
        """Without any text, it may go better next time."""
        suggestion = self.suggestion
        suggestion.done = True
        edits = (completion.edit, *completion.alternatives)
        suggestion.edits = tuple(dict.fromkeys(edit for edit in edits if edit is not None))
        suggestion.reason = completion.reason
        suggestion.engine_ms = completion.trace.ms
        suggestion.model_ms = completion.trace.model_ms
        if not suggestion.edits and completion.finish not in ("stop", "length"):
            suggestion.edits = () if suggestion.lines is None else (suggestion.lines,)
            suggestion.is_cut = bool(suggestion.edits)
            if not suggestion.edits:
                self._suggestions.remove(suggestion)
        self._on_more(suggestion)
