"""The offers of the last answers, and what became of them: the user's statistics and habits.

Both count a suggestion once, however it was typed along; habits count only those that nobody asked
for.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator

from codespec.edit import Edit
from codespec.requests import Eagerness
from codespec.usage.habits import Habits
from codespec.usage.kept_odds import KeptOdds, Level
from codespec.usage.statistics import Stats
from codespec.usage.suppression import PlaceKind

from ..documents import Snapshot
from ..positions import to_index
from .answers import Answer, Ask, Offer
from .feedback import LOOK_AGAIN_S, Feedback, Offered
from .suggestion import Tally

_MAX_OFFERS = 256


class Offers:
    """The offers of one editor window, on one event loop."""

    def __init__(
        self,
        stats: Stats | None,
        lines_of: Callable[[str, int, int], str],
        numbers: Iterator[int],
        look_again_s: float = LOOK_AGAIN_S,
    ) -> None:
        """stats: the statistics database; with None nothing is stored, and habits last as long as
            this object.
        lines_of: (uri, first, last) to the text of these lines of an open document, or "".
        numbers: ids for the offers, none twice.
        look_again_s: see `Feedback`.
        """
        self._stats = stats
        self._habits = Habits(stats)
        self._kept_odds = KeptOdds(stats)
        self._feedback = Feedback(stats, lines_of, secrets.token_hex(6), look_again_s)
        self._offers: OrderedDict[str, Offered] = OrderedDict()
        # The last answer alone is kept: its request holds the document's text.
        self._last: tuple[Ask, dict[str, Edit]] | None = None
        self._numbers = numbers
        self._part_ends: tuple[str, int] | None = None
        """(uri, index in the document) of the end of the last accepted part of a suggestion."""
        self._learning: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read the user's habits."""
        if self._stats is not None and self._learning is None:
            self._learning = asyncio.ensure_future(self._learn(self._stats))

    async def _learn(self, stats: Stats) -> None:
        self._habits.learn(await asyncio.to_thread(stats.habits))
        self._kept_odds.learn(await asyncio.to_thread(stats.outcomes))

    def why_not(self, language: str, kind: PlaceKind) -> str:
        """The habit against a suggestion that nobody asked for at such a place; "" for none."""
        return self._habits.why_not(language, kind)

    def is_hopeless(self, language: str, kind: PlaceKind) -> bool:
        """True if the habit is against it, trials apart."""
        return self._habits.of(language, kind).is_hopeless

    def eagerness(self, level: Level, language: str, kind: PlaceKind) -> Eagerness | None:
        """Certainty that an unasked suggestion has to have at such a place; None: any."""
        return self._kept_odds.eagerness(level, language, kind)

    def make(self, ask: Ask, edit: Edit, tally: Tally) -> Offer:
        """An offer of this edit, whose outcome counts for `tally`."""
        snapshot = ask.snapshot
        tally.is_offered = True
        offer = Offer(str(next(self._numbers)), edit)
        self._offers[offer.id] = Offered(
            offer.id, snapshot.uri, snapshot.language_id, snapshot.place.line,
            edit.text, tally, start=edit.start,
        )  # fmt: skip
        if len(self._offers) > _MAX_OFFERS:
            self._offers.popitem(last=False)
        return offer

    def grown(self, ask: Ask, before: Offer, edit: Edit, tally: Tally) -> Offer:
        """The offer of a longer edit in the place of `before`, whose counts it continues."""
        offer = self.make(ask, edit, tally)
        was, offered = self._offers.get(before.id), self._offers[offer.id]
        if was is not None:
            offered.latency_ms, offered.cached = was.latency_ms, was.cached
            offered.taken = was.taken
        if self._last is not None and before.id in self._last[1]:
            self._last[1][offer.id] = edit
        return offer

    def made(self, ask: Ask, answer: Answer, latency_ms: float) -> None:
        """The answer goes to the editor, `latency_ms` after its request."""
        if not answer.offers:
            return
        self._last = ask, {offer.id: offer.edit for offer in answer.offers}
        for offer in answer.offers:
            offered = self._offers[offer.id]
            offered.latency_ms, offered.cached = latency_ms, answer.cached

    def shown(self, offer_id: str) -> None:
        """The editor showed this offer."""
        if offer := self._offers.get(offer_id):
            self._shown(offer)

    def partially_accepted(self, offer_id: str, n_units: int) -> None:
        """The first `n_units` UTF-16 units of the offer are accepted by now."""
        if offer := self._offers.get(offer_id):
            self._accepted(offer)
            self._feedback.partially_accepted(offer, n_units)
            n_chars = to_index(offer.text, n_units, "utf-16")
            if n_chars < len(offer.text):
                self._part_ends = offer.uri, offer.start + n_chars

    def is_drawn(self, now: Snapshot) -> bool:
        """True if the editor draws the rest of a suggestion at this cursor: a part was accepted up
        to it, and nothing else was typed since. Called with each request that nobody asked for."""
        if self._part_ends != (now.uri, now.offset):
            self._part_ends = None
        return self._part_ends is not None

    def accepted(self, offer_id: str) -> tuple[Ask, Edit] | None:
        """All of the offer was accepted. Returns: its request and edit; None where it is not of the
        last answer."""
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
            if offer.tally.chance:
                self._kept_odds.shown(offer.language, offer.tally.kind, offer.tally.chance)

    def _accepted(self, offer: Offered) -> None:
        """Count the habit, before the statistics count the characters."""
        self._shown(offer)
        if offer.tally.kind and not offer.tally.n_accepted:
            self._habits.accepted(offer.language, offer.tally.kind)
            if offer.tally.chance:
                self._kept_odds.accepted(offer.language, offer.tally.kind)
