"""How much a model is shown of a file: as much as it reads while its user waits.

The first suggestion at a place waits for the text around it to be read. A small model reads the
whole window in an instant, one of a billion parameters takes many seconds for it on a CPU. Whoever
waits for the model's own text instead has it read as much as its context holds
(`CompletionRequest.whole`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from codespec.config import Settings
from codespec.context.build import Window
from codespec.drafters.cost import CostCurve
from codespec.requests import CompletionRequest

# With fewer tokens, a model knows too little of the place to be worth asking.
_LEAST = 160


@dataclass(frozen=True, slots=True)
class Shown:
    """Most tokens of the document, and of all snippets together."""

    window: Window
    n_snippet_tokens: int

    @property
    def n_tokens(self) -> int:
        """Of the document."""
        return self.window.n_prefix + self.window.n_suffix

    def times(self, n: int) -> Shown:
        window = Window(self.window.n_prefix * n, self.window.n_suffix * n)
        return Shown(window, self.n_snippet_tokens * n)

    def halved(self) -> Shown:
        window = Window(self.window.n_prefix // 2, self.window.n_suffix // 2)
        return Shown(window, self.n_snippet_tokens // 2)


class Passes(Protocol):
    """What is known of a model's passes, as of `Pace`."""

    @property
    def is_measured(self) -> bool: ...
    @property
    def curve(self) -> CostCurve: ...


class Reading:
    """Decides once, when it was measured what passes cost: with another window, everything would be
    read anew. Until then, by what was read."""

    def __init__(
        self,
        settings: Settings,
        passes: Passes,
        read_ms: Callable[[], float],
        n_units: int = 1,
    ) -> None:
        """read_ms: milliseconds a token of what was read, 0 for nothing. n_units: see `Decoder`."""
        self._passes = passes
        self._read_ms = read_ms
        self._max_ms = settings.completion.max_read_ms
        self._all = whole(settings).times(n_units)
        self._decided: Shown | None = None

    @property
    def shown(self) -> Shown:
        if self._decided is None and self._passes.is_measured:
            self._decided = readable(self._all, self._passes.curve.token_ms, self._max_ms)
        return self._decided or readable(self._all, self._read_ms(), self._max_ms)

    def of(self, request: CompletionRequest, n_left: int, n_right: int) -> Shown:
        """For a document of so many tokens before and after the cursor."""
        if request.whole:
            return Shown(Window(n_left, n_right), self._all.n_snippet_tokens)
        return self.shown


def whole(settings: Settings) -> Shown:
    """What a model is shown that reads quickly."""
    chosen = settings.completion
    window = Window(chosen.n_prefix_tokens, chosen.n_suffix_tokens)
    return Shown(window, settings.context.max_tokens)


def readable(shown: Shown, token_ms: float, max_ms: float) -> Shown:
    """Halved until a model that takes `token_ms` a token reads the window in `max_ms`; 0: as it is.
    Snippets are cut in proportion."""
    while 0 < max_ms < shown.n_tokens * token_ms and shown.n_tokens // 2 >= _LEAST:
        shown = shown.halved()
    return shown
