"""One text that is being generated, and where it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from codespec.sampling import Sampler
from codespec.types import Finish

Stop = Callable[[list[int]], bool]
"""True if the output is complete; asked after every token with all tokens so far."""


def never_stop(emitted: list[int]) -> bool:
    """`Stop` for an output that only its limits end."""
    return False


@dataclass(frozen=True, slots=True)
class Limits:
    """max_tokens: of output, without the first ones that `n_free` counts.
    deadline: on the completer's clock, in seconds.
    is_in_line: True while the output will not be found complete before a line ends.
    """

    max_tokens: int
    deadline: float = float("inf")
    max_width: int = 16
    n_free: Callable[[Sequence[int]], int] = lambda emitted: 0
    is_in_line: Callable[[], bool] = lambda: False


@dataclass(slots=True)
class Output:
    """tokens: emitted so far, without an end-of-generation token. finish: None while it goes on.
    eog: ids that end it."""

    sampler: Sampler
    limits: Limits
    eog: Collection[int]
    stop: Stop = never_stop
    tokens: list[int] = field(default_factory=list[int])
    finish: Finish | None = None

    @property
    def n_left(self) -> int:
        """Tokens that it may still have."""
        return self.limits.max_tokens + self.limits.n_free(self.tokens) - len(self.tokens)

    def take(self, said: Sequence[int]) -> None:
        """Append what a pass said, token by token, so that the end is where plain decoding ends."""
        tokens, eog, stop, n_most = self.tokens, self.eog, self.stop, self.limits.max_tokens
        for token in said:
            if token in eog:
                self.finish = "stop"
                return
            tokens.append(token)
            if stop(tokens):
                self.finish = "stop"
                return
            # The first comparison is the cheap one, and nearly always enough.
            if len(tokens) >= n_most and self.n_left <= 0:
                self.finish = "length"
                return
