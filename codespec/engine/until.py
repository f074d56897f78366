"""Stop texts: the output ends before the first of them."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.types import Tokenizer


def before_first(text: str, stops: Sequence[str]) -> str:
    """`text` up to the first place where one of `stops` begins."""
    places = [at for at in (text.find(stop) for stop in stops if stop) if at >= 0]
    return text[: min(places)] if places else text


class StopTexts:
    """Whether an output holds one of the texts; asked after each token with all tokens so far.

    n_healed: bytes that the output repeats from before the cursor; they do not count.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str], n_healed: int) -> None:
        self._tokenizer = tokenizer
        self._stops = [stop.encode() for stop in stops if stop]
        self._longest = max(map(len, self._stops), default=0)
        self._n_healed = n_healed
        self._text = b""
        self._n_read = 0

    def __call__(self, emitted: Sequence[int]) -> bool:
        n_seen = len(self._text)
        for token in emitted[self._n_read :]:
            self._text += self._tokenizer.piece(token)
        self._n_read = len(emitted)
        start = max(self._n_healed, n_seen - self._longest + 1)
        return any(self._text.find(stop, start) >= 0 for stop in self._stops)
