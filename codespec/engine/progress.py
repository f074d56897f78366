"""A completion before its end: what was said so far, and what of it is fit to be shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codespec.edit import Edit
from codespec.requests import OnProgress, Progress

INTERVAL_S = 0.02


def finished_lines(raw: bytes) -> bytes:
    """`raw` without its last line, which may go on."""
    return raw[: max(0, raw.rfind(b"\n"))]


class Teller:
    """Tells now and then how far the output is; called after every token with all of them.

    decode: the bytes of tokens. n_healed: bytes the output repeats from before the cursor.
    finish: from output bytes to what is suggested, finished lines only.
    late: whether `finish` had no time; then nothing more is told.
    """

    def __init__(
        self,
        tell: OnProgress,
        decode: Callable[[Sequence[int]], bytes],
        n_healed: int,
        finish: Callable[[bytes], Edit | None],
        late: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._tell = tell
        self._decode = decode
        self._n_healed = n_healed
        self._finish = finish
        self._late = late
        self._clock = clock
        self._told_s = clock()
        self._wait_s = INTERVAL_S
        self._finished = b""
        self._lines: Edit | None = None

    def __call__(self, emitted: Sequence[int]) -> None:
        now = self._clock()
        if now - self._told_s < self._wait_s:
            return
        raw = self._decode(emitted)
        finished = finished_lines(raw)
        if finished != self._finished:
            self._finished, lines = finished, self._finish(raw)
            if self._late():
                return
            self._lines = lines
        text = raw[self._n_healed :].decode("utf-8", "ignore")
        self._tell(Progress(text, self._lines))
        self._told_s = self._clock()
        self._wait_s = max(INTERVAL_S, self._told_s - now)  # half of the time is the model's
