"""What is under way for one document."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from .answers import Ask
from .foresight import Foresight
from .generation import Generation
from .suggestions import Suggestion


@dataclass(slots=True)
class Underway:
    """turn: set when a newer request comes. generation: the last one, unless it was ended.
    went_along: what runs is of a text that came after the last request. is_taking: the last
    suggestion was taken, and no other text was typed since. read: what comes before that of
    `generation`, if not yet. reading: what `generation` answered, where what comes after it is to
    be begun once it is all there."""

    turn: asyncio.Future[None] | None = None
    generation: Generation | None = None
    grace: asyncio.TimerHandle | None = None
    went_along: bool = False
    is_taking: bool = False
    read: Suggestion | None = None
    reading: Ask | None = None
    foresight: Foresight = field(default_factory=Foresight)

    def end_turn(self) -> None:
        """Who waits is answered with nothing."""
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)

    def end_grace(self) -> None:
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None
