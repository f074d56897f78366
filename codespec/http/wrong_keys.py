"""Requests that were refused for their keys, as the log tells them: wrong keys apart from none,
which the client is not told, and seldom, as whoever tries keys would fill the log."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

log = logging.getLogger(__name__)

_EVERY_S = 10.0


class WrongKeys:
    """Counts refused requests, and logs each kind every ten seconds at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._n = Counter[str]()  # by kind, since it was logged
        self._next_s = dict[str, float]()

    def note(self, *, was_shown: bool) -> None:
        """Note a refused request. was_shown: it showed a key, a wrong one."""
        kind = "a wrong key" if was_shown else "no key"
        self._n[kind] += 1
        now = self._clock()
        if now >= self._next_s.get(kind, now):
            log.warning("requests refused for %s: %d", kind, self._n.pop(kind))
            self._next_s[kind] = now + _EVERY_S
