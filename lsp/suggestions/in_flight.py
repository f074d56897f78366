"""A suggestion in flight: its generation runs, and requests wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from codespec.config import CompletionSettings
from codespec.reasons import NoSuggestion
from codespec.requests import Completion, OnProgress, Progress
from codespec.types import Trace

from ..documents import Snapshot
from .answers import Ask
from .kept import KeptSuggestions
from .suggestion import Suggestion
from .typed_along import rest_of

# Reserve within the deadline, in seconds: the answer needs it to reach the editor.
_MARGIN_S = 0.005
# Share of the deadline that a request waits for a whole suggestion where it may be shown growing.
_WHOLE_SHARE = 0.25

Complete: TypeAlias = Callable[[OnProgress], Awaitable[Completion]]
"""Runs the generation; tells of its progress on the way."""


class SuggestionInFlight:
    """One suggestion's generation, until the model has stopped, or until `end`."""

    def __init__(
        self,
        suggestion: Suggestion,
        kept: KeptSuggestions,
        complete: Complete,
        on_end: Callable[[Completion], None],
        on_more: Callable[[Suggestion], None],
    ) -> None:
        """Begins, and adds the suggestion to those that are kept.

        on_end: told of the completion, also where nobody wants it any more.
        on_more: told of each line that was finished, and of the end.
        """
        self.suggestion = suggestion
        self._kept = kept
        self._on_more = on_more
        self._line: asyncio.Future[None] | None = None
        kept.add(suggestion)
        self._task = asyncio.ensure_future(self._run(complete, on_end))

    @property
    def is_running(self) -> bool:
        """True until the suggestion is final."""
        return not self.suggestion.done

    async def wait_for(
        self,
        ask: Ask,
        turn: asyncio.Future[None],
        limits: CompletionSettings,
        *,
        has_some: bool,
        can_grow: bool,
        is_model_ready: bool,
    ) -> None:
        """Wait as long as a request may. has_some: there is something to show at once. can_grow: an
        unasked suggestion may be shown growing. turn: ends the wait."""
        due_s = max(0.001, limits.deadline_ms(ask.invoked) / 1e3 - _MARGIN_S)
        line_s = None if limits.show_late and is_model_ready else due_s
        all_s = _WHOLE_SHARE * due_s if can_grow and not ask.invoked else due_s
        await self.wait(ask.snapshot, turn, 0.0 if has_some else all_s, line_s)

    async def wait(
        self, now: Snapshot, turn: asyncio.Future[None], all_s: float, line_s: float | None
    ) -> None:
        """Wait for as much as a request for `now` needs: at most `all_s` for the whole suggestion,
        then, where nothing of it fits `now` yet, for the first line that does, at most `line_s`
        in all, both in seconds. None for `line_s`: as long as the generation runs. `turn`: ends
        the wait."""
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
        """Cancel the generation; its text so far is the suggestion."""
        self._task.cancel()
        if self.is_running:
            self._settle(Completion(finish="cancelled", why=NoSuggestion.TEXT_CHANGED))

    async def _run(self, complete: Complete, on_end: Callable[[Completion], None]) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            completion = await complete(self._progressed)
        except asyncio.CancelledError:
            on_end(Completion(finish="cancelled", trace=Trace(ms=(loop.time() - started) * 1e3)))
            raise
        on_end(completion)
        if self.is_running:
            self._settle(completion)

    def _progressed(self, progress: Progress) -> None:
        suggestion = self.suggestion
        if len(progress.text) < len(suggestion.text) and suggestion.text.startswith(progress.text):
            return  # still within what an earlier, cut generation said
        has_more = progress.lines != suggestion.lines
        suggestion.text, suggestion.lines = progress.text, progress.lines
        suggestion.tally.chance = progress.chance
        if has_more and self._line is not None and not self._line.done():
            self._line.set_result(None)
        if has_more:
            self._on_more(suggestion)

    def _settle(self, completion: Completion) -> None:
        """The completion, or else the finished lines, are the suggestion. One without text is not
        kept where the model did not come to its end: it may be quicker next time."""
        suggestion = self.suggestion
        suggestion.done = True
        edits = (completion.edit, *completion.alternatives)
        suggestion.edits = tuple(dict.fromkeys(edit for edit in edits if edit is not None))
        suggestion.tally.chance = completion.chance or suggestion.tally.chance
        suggestion.reason = completion.reason
        suggestion.engine_ms = completion.trace.ms
        suggestion.model_ms = completion.trace.model_ms
        if not suggestion.edits and completion.finish not in ("stop", "length"):
            suggestion.edits = () if suggestion.lines is None else (suggestion.lines,)
            suggestion.is_cut = bool(suggestion.edits)
            if not suggestion.edits:
                self._kept.remove(suggestion)
        self._on_more(suggestion)
