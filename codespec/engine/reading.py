"""Budget of document text in a prompt: as much as the model reads while its user waits.

The first suggestion at a place waits for the prefill of the text around it. A small model reads the
whole window in an instant; one of a billion parameters takes many seconds for it on a CPU. A
request for the model's own text has it read as much as its context holds
(`CompletionRequest.whole`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from codespec.config import Settings
from codespec.context.prompt_window import Window
from codespec.cost.cost_curve import CostCurve
from codespec.requests import CompletionRequest

# Least tokens of a document: with fewer, a suggestion is not worth its time.
_LEAST = 160


@dataclass(frozen=True, slots=True)
class ShownText:
    """Most tokens of the document, and of all snippets together."""

    window: Window
    n_snippet_tokens: int

    @property
    def n_tokens(self) -> int:
        """Most tokens of the document, before and after the cursor."""
        return self.window.n_prefix + self.window.n_suffix

    def times(self, n: int) -> ShownText:
        window = Window(self.window.n_prefix * n, self.window.n_suffix * n)
        return ShownText(window, self.n_snippet_tokens * n)

    def halved(self) -> ShownText:
        window = Window(self.window.n_prefix // 2, self.window.n_suffix // 2)
        return ShownText(window, self.n_snippet_tokens // 2)


class PassCosts(Protocol):
    """Cost of a model's passes, as far as it is known; see `Tuner`."""

    @property
    def is_measured(self) -> bool: ...
    @property
    def curve(self) -> CostCurve: ...


class Reading:
    """Decides the window once the cost of passes was measured: another window later would make
    every prompt be read anew. Until then it follows from the speed of the prefills so far."""

    def __init__(
        self,
        settings: Settings,
        passes: PassCosts,
        read_ms: Callable[[], float],
        n_units: int = 1,
    ) -> None:
        """read_ms: milliseconds a token of the prefills so far, 0 for none. n_units: see
        `Decoder`."""
        self._passes = passes
        self._read_ms = read_ms
        self._max_ms = settings.completion.max_read_ms
        self._all = whole(settings).times(n_units)
        self._decided: ShownText | None = None

    @property
    def shown(self) -> ShownText:
        if self._decided is None and self._passes.is_measured:
            self._decided = readable(self._all, self._passes.curve.token_ms, self._max_ms)
        return self._decided or readable(self._all, self._read_ms(), self._max_ms)

    @property
    def share(self) -> float:
        """Share of the settings' budget that is read, 0 to 1."""
        return self.shown.n_tokens / max(1, self._all.n_tokens)

    def of(self, request: CompletionRequest, n_left: int, n_right: int) -> ShownText:
        """The budget for a document with so many tokens before and after the cursor."""
        if request.whole:
            return ShownText(Window(n_left, n_right), self._all.n_snippet_tokens)
        return self.shown


def whole(settings: Settings) -> ShownText:
    """The budget of the settings, for a model that reads quickly."""
    chosen = settings.completion
    window = Window(chosen.n_prefix_tokens, chosen.n_suffix_tokens)
    return ShownText(window, settings.context.max_tokens)


def readable(shown: ShownText, token_ms: float, max_ms: float) -> ShownText:
    """The budget, halved until a model that takes `token_ms` a token reads the window in `max_ms`;
    as it is for max_ms = 0. Snippets shrink in proportion."""
    while 0 < max_ms < shown.n_tokens * token_ms and shown.n_tokens // 2 >= _LEAST:
        shown = shown.halved()
    return shown
