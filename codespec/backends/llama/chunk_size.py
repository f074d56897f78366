"""Chunked prefill: the number of prompt tokens in a pass."""

from __future__ import annotations


class ChunkSize:
    """Adapts the size of prefill chunks to the time between cancellations.

    A cancelled chunk is lost, so a model that takes longer for a chunk than its user for a key
    would read the same one again and again.

    n: tokens of the next chunk, between `least` and `most`. Starts at `most`.
    """

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = min(least, most), most
        self.n = most
        self._n_done = 0  # chunks of this size since the prompt began
        self._is_longer = False  # the size was doubled since the prompt began

    @property
    def is_short(self) -> bool:
        """True if chunks were cancelled lately, and the next one may be, too."""
        return self.n < self._most

    def begin(self) -> None:
        """Start a prefill."""
        self._n_done, self._is_longer = 0, False

    def done(self) -> None:
        """Count a chunk that was read. After two, in whose time a chunk of twice the size would
        have been read, the size doubles, once a prompt."""
        self._n_done += 1
        if self._n_done == 2 and not self._is_longer and self.is_short:
            self.n, self._n_done, self._is_longer = min(2 * self.n, self._most), 0, True

    def lost(self) -> None:
        """Count a cancelled chunk. Where none of its size was read before, the size is halved."""
        if not self._n_done:
            self.n, self._is_longer = max(self.n // 2, self._least), False
