"""Ends of the output that the client asks for, whatever is being written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codespec.types import Tokenizer, Trace

# The beginning of a line that is not blank.
_LINE = re.compile(rb"\n([ \t]*)[^\s]")
_TAB = 8  # columns, what editors count unless told otherwise


@dataclass(frozen=True, slots=True)
class Until:
    """stops: the text ends before the first of them.
    min_indent: and before a line after the first that is indented by fewer columns.
    max_line_ms: so long after the first token, it ends with the line it is in; 0: no limit.
    """

    stops: tuple[str, ...] = ()
    min_indent: int = 0
    max_line_ms: float = 0.0

    @property
    def asks(self) -> bool:
        return bool(any(self.stops) or self.min_indent > 0 or self.max_line_ms > 0)

    def first_stop(self, text: str) -> tuple[int, int] | None:
        """(where the first stop text in `text` begins, its number); None without one."""
        found = ((text.find(stop), n) for n, stop in enumerate(self.stops) if stop)
        return min((place for place in found if place[0] >= 0), default=None)

    def before_stop(self, text: str) -> str:
        """`text` up to the first place where a stop text begins."""
        first = self.first_stop(text)
        return text if first is None else text[: first[0]]

    def cut(self, text: str) -> str:
        """`text` up to where it ends."""
        text = self.before_stop(text)
        raw = text.encode()
        dedent = self.dedent(raw)
        return text if dedent is None else raw[:dedent].decode()

    def dedent(self, raw: bytes, start: int = 0) -> int | None:
        """Offset, from `start` on, of the line end before a line that is indented too little; None
        without one."""
        if self.min_indent <= 0:
            return None
        for line in _LINE.finditer(raw, start):
            if len(line[1].expandtabs(_TAB)) < self.min_indent:
                return line.start()
        return None

    def settled(self, text: str) -> str:
        """The part of a growing text that will not be cut, whatever comes after it."""
        kept = self.cut(text)
        if kept != text:
            return kept
        if self.min_indent > 0:
            # A line of white space alone may become one with too little of it.
            newline = kept.find("\n", len(kept.rstrip()))
            kept = kept[:newline] if newline >= 0 else kept
        n_open = max((_n_begun(kept, stop) for stop in self.stops), default=0)
        return kept[: len(kept) - n_open]


def _n_begun(text: str, stop: str) -> int:
    """How many of the last characters may be the beginning of `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


class UntilRule:
    """Stop rule: True if an output has come to an end of `Until`. Called after each token with all
    tokens so far.

    n_healed: bytes that the output repeats from before the cursor; they do not count.
    trace: told if a limit ended it, no stop text.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        until: Until,
        n_healed: int,
        clock: Callable[[], float] = time.perf_counter,
        trace: Trace | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._stops = [stop.encode() for stop in until.stops if stop]
        self._longest = max(map(len, self._stops), default=0)
        self._until = until
        self._n_healed = n_healed
        self._clock = clock
        self._trace = Trace() if trace is None else trace
        self._began_s: float | None = None
        self._text = b""
        self._n_read = 0

    def __call__(self, emitted: Sequence[int]) -> bool:
        n_seen = len(self._text)
        for token in emitted[self._n_read :]:
            self._text += self._tokenizer.piece(token)
        self._n_read = len(emitted)
        start = max(self._n_healed, n_seen - self._longest + 1)
        if any(self._text.find(stop, start) >= 0 for stop in self._stops):
            return True
        last_line = max(self._n_healed, self._text.rfind(b"\n", 0, n_seen))
        is_dedented = self._until.dedent(self._text, last_line) is not None
        self._trace.is_limited = is_dedented or self._is_late(n_seen)
        return self._trace.is_limited

    def _is_late(self, n_seen: int) -> bool:
        if self._until.max_line_ms <= 0:
            return False
        now = self._clock()
        if self._began_s is None:
            self._began_s = now
        ends_line = self._text.find(b"\n", max(self._n_healed, n_seen)) >= 0
        return ends_line and (now - self._began_s) * 1e3 >= self._until.max_line_ms
