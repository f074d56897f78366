"""The suggestions of one document that are in flight: who waits for one, and what generates."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from .answers import Ask
from .in_flight import SuggestionInFlight
from .next_request import NextRequest
from .suggestion import Suggestion


@dataclass(slots=True)
class DocumentState:
    """State of one document between requests.

    turn: of the request that waits; set when a newer one comes.
    generation: the last one, unless it was ended.
    grace: ends the generation soon after its request was cancelled.
    is_ahead: True if the generation is of a text newer than the last request's.
    has_accepted: True if the last suggestion was accepted, and no other text was typed since.
    before: the suggestion that the one in flight follows, until it is typed or accepted; the text
        may still be within it.
    edited_s: the event loop's time of the last change.
    is_ready: True if the last answer was that a suggestion is ready.
    to_follow: the last answered request, whose suggestion is to be followed once it is complete.
    """

    turn: asyncio.Future[None] | None = None
    generation: SuggestionInFlight | None = None
    grace: asyncio.TimerHandle | None = None
    is_ahead: bool = False
    has_accepted: bool = False
    before: Suggestion | None = None
    to_follow: Ask | None = None
    edited_s: float = 0.0
    is_ready: bool = False
    next_request: NextRequest = field(default_factory=NextRequest)

    def end_turn(self) -> None:
        """The waiting request is answered with nothing."""
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)

    async def idle(self, idle_ms: float, turn: asyncio.Future[None]) -> None:
        """Wait until nothing was typed for so long, or until `turn` is over."""
        left_s = self.edited_s + idle_ms / 1e3 - asyncio.get_running_loop().time()
        if left_s > 0:
            await asyncio.wait({turn}, timeout=left_s)

    def end_grace(self) -> None:
        """The generation of a cancelled request goes on."""
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None
