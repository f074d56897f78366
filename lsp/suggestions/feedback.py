"""Counts of what became of the offers, in the user's own statistics, on this machine alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from codespec.usage.retained import n_retained
from codespec.usage.statistics import Stats

from ..positions import to_index
from .suggestion import Tally

LOOK_AGAIN_S = 60.0
_FLUSH_S = 20.0
# Lines searched before and after an accepted text, which may have been moved a little.
_LINES_AROUND = 20


@dataclass(slots=True)
class Taken:
    """The text accepted by now, of an offer and of the offers that it grew to."""

    text: str = ""


@dataclass(slots=True)
class Offered:
    """An offer with what its counts need. `tally`: of the suggestion that it is the rest of.
    start: index in the document where it begins, in characters."""

    id: str
    uri: str
    language: str
    line: int
    text: str
    tally: Tally
    latency_ms: float = 0.0
    cached: bool = False
    taken: Taken = field(default_factory=Taken)
    start: int = 0


class Feedback:
    """Counts on one event loop; nothing is counted without a statistics database."""

    def __init__(
        self,
        stats: Stats | None,
        lines_of: Callable[[str, int, int], str],
        session_id: str,
        look_again_s: float = LOOK_AGAIN_S,
    ) -> None:
        """lines_of: (uri, first, last) to the text of these lines of an open document, or "".
        session_id: makes the offers' numbers unique among all of a user's editors.
        look_again_s: seconds until the retained part of an accepted text is counted.
        """
        self._look_again_s = look_again_s
        self._stats = stats
        self._lines_of = lines_of
        self._session_id = session_id
        self._timers: set[asyncio.TimerHandle] = set()
        self._flush: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Future[None] | None = None

    def shown(self, offer: Offered) -> bool:
        """Count a shown suggestion. Returns: True if this offer is the first one shown of it."""
        if offer.tally.first:
            return False
        offer.tally.first = offer.id
        if self._stats is not None:
            self._stats.shown(
                self._key(offer), offer.language, len(offer.text), offer.latency_ms,
                cached=offer.cached,
            )  # fmt: skip
            self._flush_soon()
        return True

    def partially_accepted(self, offer: Offered, n_units: int) -> None:
        """The first `n_units` UTF-16 units of the text are accepted by now."""
        self.accepted(offer, to_index(offer.text, n_units, "utf-16"))

    def accepted(self, offer: Offered, n_chars: int | None = None) -> None:
        """The first `n_chars` characters are accepted by now, of an offer whose suggestion was
        shown; None: all of them."""
        n_chars = len(offer.text) if n_chars is None else n_chars
        n_before = len(offer.taken.text)
        if self._stats is None or n_chars <= n_before:
            return
        if not n_before:
            self._later(self._look_again_s, lambda: self._look_again(offer))
        offer.taken.text = offer.text[:n_chars]
        offer.tally.n_accepted += len(offer.taken.text) - n_before
        self._stats.accepted(self._key(offer), offer.tally.n_accepted, len(offer.text))
        self._flush_soon()

    def typed(self, language: str, n_chars: int) -> None:
        """Characters came into a document by typing."""
        if self._stats is not None:
            self._stats.typed(language, n_chars)
            self._flush_soon()

    async def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._flushing is not None:
            await self._flushing
        if self._stats is not None:
            await asyncio.to_thread(self._stats.flush)

    def _key(self, offer: Offered) -> str:
        return f"{self._session_id}-{offer.tally.first}"

    def _look_again(self, offer: Offered) -> None:
        """Count the accepted characters that the document still has."""
        taken = offer.taken.text
        last = offer.line + taken.count("\n") + _LINES_AROUND
        now = self._lines_of(offer.uri, max(0, offer.line - _LINES_AROUND), last)
        if now and self._stats is not None:
            offer.tally.n_retained += n_retained(taken, now)
            self._stats.retained(self._key(offer), offer.tally.n_retained)
            self._flush_soon()

    def _flush_soon(self) -> None:
        if self._flush is None:
            self._flush = self._later(_FLUSH_S, self._flush_now)

    def _flush_now(self) -> None:
        self._flush = None
        if self._stats is not None:
            self._flushing = asyncio.ensure_future(asyncio.to_thread(self._stats.flush))

    def _later(self, after_s: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        def run() -> None:
            self._timers.discard(handle)
            call()

        handle = asyncio.get_running_loop().call_later(after_s, run)
        self._timers.add(handle)
        return handle
