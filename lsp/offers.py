"""What was offered lately, and what became of it: the user's statistics, and habits.

Both count a suggestion once, however it was typed along; habits only those nobody asked for.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator

from codespec.edit import Edit
from codespec.habits import Habits
from codespec.stats import Stats

from .answers import Answer, Ask, Offer
from .feedback import LOOK_AGAIN_S, Feedback, Offered
from .suggestions import Tally

_MAX_OFFERS = 256


class Offers:
    """On one event loop. `lines_of(uri, first, last)`: text of an open document, or ""."""

    def __init__(
        self,
        stats: Stats | None,
        lines_of: Callable[[str, int, int], str],
        numbers: Iterator[int],
        look_again_s: float = LOOK_AGAIN_S,
    ) -> None:
        """stats: where numbers are kept; None: nowhere, habits last as long as this object.
        numbers: for the offers, never one twice. look_again_s: see `Feedback`."""
        self._stats = stats
        self._habits = Habits(stats)
        self._feedback = Feedback(stats, lines_of, secrets.token_hex(6), look_again_s)
        self._offers: OrderedDict[str, Offered] = OrderedDict()
        # Of the last answer alone: what was asked holds the document's text.
        self._last: tuple[Ask, dict[str, Edit]] | None = None
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

    def is_hopeless(self, language: str, kind: str) -> bool:
        """Whether the habit is against it, trials apart."""
        return self._habits.of(language, kind).is_hopeless

    def make(self, ask: Ask, edit: Edit, tally: Tally) -> Offer:
        snapshot = ask.snapshot
        tally.is_offered = True
        offer = Offer(str(next(self._numbers)), edit)
        self._offers[offer.id] = Offered(
            offer.id, snapshot.uri, snapshot.language_id, snapshot.place.line,
            edit.text, tally,
        )  # fmt: skip
        if len(self._offers) > _MAX_OFFERS:
            self._offers.popitem(last=False)
        return offer

    def grown(self, ask: Ask, before: Offer, edit: Edit, tally: Tally) -> Offer:
        """What was answered is more by now, in the same place."""
        offer = self.make(ask, edit, tally)
        was, offered = self._offers.get(before.id), self._offers[offer.id]
        if was is not None:
            offered.latency_ms, offered.cached = was.latency_ms, was.cached
            offered.taken = was.taken
        if self._last is not None and before.id in self._last[1]:
            self._last[1][offer.id] = edit
        return offer

    def made(self, ask: Ask, answer: Answer, latency_ms: float) -> None:
        """The answer goes to the editor."""
        if not answer.offers:
            return
        self._last = ask, {offer.id: offer.edit for offer in answer.offers}
        for offer in answer.offers:
            offered = self._offers[offer.id]
            offered.latency_ms, offered.cached = latency_ms, answer.cached

    def shown(self, offer_id: str) -> None:
        if offer := self._offers.get(offer_id):
            self._shown(offer)

    def partially_accepted(self, offer_id: str, n_units: int) -> None:
        """`n_units`: how much up to now, in units of UTF-16."""
        if offer := self._offers.get(offer_id):
            self._accepted(offer)
            self._feedback.partially_accepted(offer, n_units)

    def accepted(self, offer_id: str) -> tuple[Ask, Edit] | None:
        """All of it was. What was asked and offered; None where that was not answered last."""
        if offer := self._offers.get(offer_id):
            self._accepted(offer)
            self._feedback.accepted(offer)
        if self._last is None or offer_id not in self._last[1]:
            return None
        ask, edits = self._last
        return ask, edits[offer_id]

    def typed(self, language_id: str, n_chars: int) -> None:
        """Characters came into a document by typing."""
        self._feedback.typed(language_id, n_chars)

    def forget(self, uri: str) -> None:
        """The document is no longer open."""
        if self._last is not None and self._last[0].snapshot.uri == uri:
            self._last = None

    async def close(self) -> None:
        if self._learning is not None:
            await self._learning
        await self._feedback.close()

    def _shown(self, offer: Offered) -> None:
        if self._feedback.shown(offer) and offer.tally.kind:
            self._habits.shown(offer.language, offer.tally.kind)

    def _accepted(self, offer: Offered) -> None:
        """Something of it, before that is counted."""
        self._shown(offer)
        if offer.tally.kind and not offer.tally.n_accepted:
            self._habits.accepted(offer.language, offer.tally.kind)
