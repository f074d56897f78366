"""The suggestion that an editor shows while its generation goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from .answers import Ask, Offer
from .offers import Offers
from .suggestion import Suggestion
from .typed_along import rest_of

Grown: TypeAlias = Callable[[Ask, str, Offer], None]
"""Tells the editor of growth: the request, the id of the offer that answered it, and the longer
offer."""

# Lines that come together are told of together, and none before the answer that it belongs to.
_PAUSE_S = 0.03


class ShownSuggestion:
    """At most one suggestion, on one event loop; none where the editor cannot show growth."""

    def __init__(self, tell: Grown | None) -> None:
        self._tell = tell
        self._shown: tuple[Ask, Suggestion, Offers, str] | None = None
        self._now: Offer | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def can_grow(self) -> bool:
        """True if the editor can show growth."""
        return self._tell is not None

    def begin(self, ask: Ask, suggestion: Suggestion, offers: Offers, offer: Offer) -> None:
        """`offer` answers `ask` with the finished lines of an unfinished suggestion."""
        self.end()
        self._shown, self._now = (ask, suggestion, offers, offer.id), offer

    def end(self) -> None:
        """The editor shows it no longer, or its text has changed."""
        self._shown = self._now = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end_if(self, suggestion: Suggestion) -> None:
        """`end`, if this is the suggestion that is shown."""
        if self._shown is not None and self._shown[1] is suggestion:
            self.end()

    def grew(self, suggestion: Suggestion) -> None:
        """The model added to this suggestion, or finished it."""
        if self._shown is not None and self._shown[1] is suggestion and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_S, self._tell_more)

    def _tell_more(self) -> None:
        self._timer = None
        if self._shown is None or self._now is None or self._tell is None:
            return
        ask, suggestion, offers, answered = self._shown
        rest = rest_of(suggestion, ask.snapshot)
        before = self._now.edit
        edit = rest.edits[0] if rest is not None and rest.edits else before
        # The shown text must stay; a repaired end may differ in it.
        is_longer = edit.text.startswith(before.text) and edit.text != before.text
        if is_longer and edit.end == before.end:
            self._now = offers.grown(ask, self._now, edit, suggestion.tally)
            self._tell(ask, answered, self._now)
