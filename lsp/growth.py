"""The suggestion that an editor shows while the model goes on with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from .answers import Ask, Offer
from .offers import Offers
from .suggestions import Suggestion, rest_of

Grown: TypeAlias = Callable[[Ask, str, Offer], None]
"""Told of what was asked, the id of the offer that was answered with, and what it is by now."""

# Lines that come together are told of together, and nothing before the answer that it belongs to.
_PAUSE_S = 0.03


class Growth:
    """Of one at a time, on one event loop; of none where nobody is to be told."""

    def __init__(self, tell: Grown | None) -> None:
        self._tell = tell
        self._shown: tuple[Ask, Suggestion, Offers, str] | None = None
        self._now: Offer | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_shown(self) -> bool:
        return self._tell is not None

    def begin(self, ask: Ask, suggestion: Suggestion, offers: Offers, offer: Offer) -> None:
        """`offer` is the answer, of a suggestion that is not all there yet."""
        self.end()
        self._shown, self._now = (ask, suggestion, offers, offer.id), offer

    def end(self) -> None:
        """It is not shown any more, or not what it was."""
        self._shown = self._now = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end_of(self, suggestion: Suggestion) -> None:
        """The same, if it is this one."""
        if self._shown is not None and self._shown[1] is suggestion:
            self.end()

    def more(self, suggestion: Suggestion) -> None:
        """Of this one there is more by now."""
        if self._shown is not None and self._shown[1] is suggestion and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._shown is None or self._now is None or self._tell is None:
            return
        ask, suggestion, offers, answered = self._shown
        rest = rest_of(suggestion, ask.snapshot)
        before = self._now.edit
        edit = rest.edits[0] if rest is not None and rest.edits else before
        # What is shown stays; a mended end may differ in it.
        is_longer = edit.text.startswith(before.text) and edit.text != before.text
        if is_longer and edit.end == before.end:
            self._now = offers.grown(ask, self._now, edit, suggestion.tally)
            self._tell(ask, answered, self._now)
