"""What became of the offers: counted in the user's own statistics, on this machine alone."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from codespec.stats import Stats, n_retained

from .positions import to_index

_MAX_OFFERS = 256
_LOOK_AGAIN_S = 60.0
_FLUSH_S = 20.0
# Around an accepted text, for what was moved a little.
_LINES_AROUND = 20


@dataclass(slots=True)
class _Offer:
    uri: str
    language: str
    line: int
    text: str
    latency_ms: float
    cached: bool
    n_accepted: int = 0
    was_shown: bool = False


class Feedback:
    """On one event loop. `lines_of(uri, first, last)`: text of an open document, or ""."""

    def __init__(
        self,
        stats: Stats | None,
        lines_of: Callable[[str, int, int], str],
        session_id: str,
        look_again_s: float = _LOOK_AGAIN_S,
    ) -> None:
        """`session_id` makes the offers' numbers unique among all of a user's editors.
        `look_again_s`: after so long, what is left of an accepted text is counted."""
        self._look_again_s = look_again_s
        self._stats = stats
        self._lines_of = lines_of
        self._session_id = session_id
        self._offers: OrderedDict[str, _Offer] = OrderedDict()
        self._timers: set[asyncio.TimerHandle] = set()
        self._flush: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Future[None] | None = None

    def offered(
        self, offer_id: str, uri: str, language: str, line: int, text: str,
        latency_ms: float, cached: bool,
    ) -> None:  # fmt: skip
        self._offers[offer_id] = _Offer(uri, language, line, text, latency_ms, cached)
        if len(self._offers) > _MAX_OFFERS:
            self._offers.popitem(last=False)

    def shown(self, offer_id: str) -> None:
        offer = self._offers.get(offer_id)
        if offer is None or offer.was_shown or self._stats is None:
            return
        offer.was_shown = True
        self._stats.shown(
            self._key(offer_id), offer.language, len(offer.text), offer.latency_ms,
            cached=offer.cached,
        )  # fmt: skip
        self._flush_soon()

    def partially_accepted(self, offer_id: str, n_units: int) -> None:
        """`n_units`: of UTF-16, from the start of the text."""
        offer = self._offers.get(offer_id)
        if offer is not None:
            self.accepted(offer_id, to_index(offer.text, n_units, "utf-16"))

    def accepted(self, offer_id: str, n_chars: int | None = None) -> None:
        """So many characters up to now; None: all."""
        offer = self._offers.get(offer_id)
        if offer is None or self._stats is None:
            return
        self.shown(offer_id)
        n_chars = len(offer.text) if n_chars is None else n_chars
        if not offer.n_accepted:
            self._later(self._look_again_s, lambda: self._look_again(offer_id, offer))
        offer.n_accepted = max(offer.n_accepted, n_chars)
        self._stats.accepted(self._key(offer_id), offer.n_accepted)
        self._flush_soon()

    def typed(self, language: str, n_chars: int) -> None:
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

    def _key(self, offer_id: str) -> str:
        return f"{self._session_id}-{offer_id}"

    def _look_again(self, offer_id: str, offer: _Offer) -> None:
        last = offer.line + offer.text.count("\n") + _LINES_AROUND
        now = self._lines_of(offer.uri, max(0, offer.line - _LINES_AROUND), last)
        if now and self._stats is not None:
            self._stats.retained(
                self._key(offer_id), n_retained(offer.text[: offer.n_accepted], now)
            )
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
