"""What was offered lately, and what became of it: the user's statistics, and habits.

Habits count each suggestion that nobody asked for once, however it was typed along.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator

from codespec.habits import Habits
from codespec.stats import Stats

from .answers import Answer, Ask, Offer
from .feedback import Feedback
from .suggestions import Piece, Suggestion

_MAX_OFFERS = 256


class Offers:
    """On one event loop. `lines_of(uri, first, last)`: text of an open document, or ""."""

    def __init__(
        self,
        stats: Stats | None,
        lines_of: Callable[[str, int, int], str],
        numbers: Iterator[int],
    ) -> None:
        """stats: where numbers are kept; None: nowhere, habits last as long as this object.
        numbers: for the offers, never one twice."""
        self._stats = stats
        self._habits = Habits(stats)
        self._feedback = Feedback(stats, lines_of, secrets.token_hex(6))
        self._offers: OrderedDict[str, tuple[Ask, Piece, Suggestion]] = OrderedDict()
        self._numbers = numbers
        self._learning: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read the user's habits."""
        if self._stats is not None and self._learning is None:
            self._learning = asyncio.ensure_future(self._learn(self._stats))

    async def _learn(self, stats: Stats) -> None:
        self._habits.learn(await asyncio.to_thread(stats.habits))

    def why_not(self, language: str, kind: str) -> str:
        """The habit against suggesting anything unasked at such a place, "" for none."""
        return self._habits.why_not(language, kind)

    def make(self, ask: Ask, piece: Piece, suggestion: Suggestion) -> Offer:
        offer = Offer(str(next(self._numbers)), piece)
        self._offers[offer.id] = (ask, piece, suggestion)
        if len(self._offers) > _MAX_OFFERS:
            self._offers.popitem(last=False)
        return offer

    def made(self, ask: Ask, answer: Answer, latency_ms: float) -> None:
        """The answer goes to the editor."""
        snapshot = ask.snapshot
        for offer in answer.offers:
            self._feedback.offered(
                offer.id, snapshot.uri, snapshot.language_id, snapshot.place.line,
                snapshot.selected + offer.piece.text, latency_ms, answer.cached,
            )  # fmt: skip

    def shown(self, offer_id: str) -> None:
        self._feedback.shown(offer_id)
        self._count(offer_id, accepted=False)

    def partially_accepted(self, offer_id: str, n_units: int) -> None:
        """`n_units`: how much up to now, in units of UTF-16."""
        self._feedback.partially_accepted(offer_id, n_units)
        self._count(offer_id, accepted=True)

    def accepted(self, offer_id: str) -> tuple[Ask, Piece] | None:
        """All of it was. What was asked and offered; None where that was too long ago."""
        self._feedback.accepted(offer_id)
        self._count(offer_id, accepted=True)
        found = self._offers.get(offer_id)
        return found[:2] if found is not None else None

    def typed(self, language_id: str, n_chars: int) -> None:
        """Characters came into a document by typing."""
        self._feedback.typed(language_id, n_chars)

    async def close(self) -> None:
        if self._learning is not None:
            await self._learning
        await self._feedback.close()

    def _count(self, offer_id: str, *, accepted: bool) -> None:
        if offer_id not in self._offers:
            return
        ask, _, suggestion = self._offers[offer_id]
        language, kind = ask.snapshot.language_id, suggestion.kind
        if kind and not suggestion.was_shown:
            suggestion.was_shown = True
            self._habits.shown(language, kind)
        if kind and accepted and not suggestion.was_accepted:
            suggestion.was_accepted = True
            self._habits.accepted(language, kind)
