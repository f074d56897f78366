"""How many tokens of a prompt are read at a time."""

from __future__ import annotations


class Parts:
    """As many as there is time for. What was read of a part that is cut short is lost, so a model
    that takes longer for a part than its user for a key would read the same one again and again.

    n: tokens of the next part, between `least` and `most`. Begins with `most`.
    """

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = min(least, most), most
        self.n = most
        self._n_done = 0  # of this length, since a prompt began
        self._is_longer = False  # than those read before

    @property
    def is_short(self) -> bool:
        """Whether the next one is likely to be cut short, too."""
        return self.n < self._most

    def begin(self) -> None:
        """A prompt is about to be read, or its rest."""
        self._n_done, self._is_longer = 0, False

    def done(self) -> None:
        """A part was read. In the time of two, one twice as long would have been: that is tried
        once for each prompt."""
        self._n_done += 1
        if self._n_done == 2 and not self._is_longer and self.is_short:
            self.n, self._n_done, self._is_longer = min(2 * self.n, self._most), 0, True

    def lost(self) -> None:
        """One was cut short. Where none of its length was read before, the next is half as long."""
        if not self._n_done:
            self.n, self._is_longer = max(self.n // 2, self._least), False
