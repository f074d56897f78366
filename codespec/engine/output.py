"""One output while it is decoded, and the rules that end it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from codespec.native import log_probability
from codespec.types import Finish, LogitsRows, Verdict
from codespec.verify.sampling import Sampler

Stop = Callable[[list[int]], bool]
"""True if the output is complete; asked after every token with all tokens so far."""


def never_stop(emitted: list[int]) -> bool:
    """`Stop` for an output that only its limits end."""
    return False


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """Limits of one output.

    max_tokens: tokens of the output, the first ones that `n_free` counts left out.
    deadline:   reading of the completer's clock, seconds; infinity for none.
    max_width:  drafted tokens a pass.
    n_free:     counts the tokens of an output that only repeat text before the cursor.
    is_in_line: True while the output cannot be complete before a line ends.
    """

    max_tokens: int
    deadline: float = float("inf")
    max_width: int = 16
    n_free: Callable[[Sequence[int]], int] = lambda emitted: 0
    is_in_line: Callable[[], bool] = lambda: False


@dataclass(slots=True)
class Output:
    """One output.

    eog:    end-of-generation ids.
    tokens: emitted so far, without an end-of-generation token.
    finish: cause of the end; None before it.
    log_probs: log-probability of each token, and of an end-of-generation token; None where nobody
        needs them.
    """

    sampler: Sampler
    limits: OutputLimits
    eog: Collection[int]
    stop: Stop = never_stop
    tokens: list[int] = field(default_factory=list[int])
    finish: Finish | None = None
    log_probs: list[float] | None = None

    @property
    def n_left(self) -> int:
        """Tokens that the limits still allow."""
        return self.limits.max_tokens + self.limits.n_free(self.tokens) - len(self.tokens)

    def log_probs_of(self, rows: LogitsRows, verdict: Verdict) -> list[float]:
        """Natural logarithm of the probability of each token that a pass emits, before temperature
        and the like, among those that the sampler's mask allows."""
        history, mask = list(self.tokens), self.sampler.mask
        found: list[float] = []
        for node, token in zip((-1, *verdict.path), verdict.emitted, strict=False):
            row = rows.row(node + 1)
            allowed = mask.allowed(history) if mask is not None else None
            if allowed is not None:
                row, token = row[allowed], int(np.searchsorted(allowed, token))
            found.append(log_probability(row, token))
            history.append(verdict.emitted[len(found) - 1])
        return found

    def take(self, said: Sequence[int], log_probs: Sequence[float] = ()) -> None:
        """Append the tokens of a pass one by one, so that the output ends where plain decoding
        ends. log_probs: of each token, where the output keeps them."""
        tokens, eog, stop, n_most = self.tokens, self.eog, self.stop, self.limits.max_tokens
        for i, token in enumerate(said):
            if self.log_probs is not None:
                self.log_probs.append(log_probs[i])
            if token in eog:
                self.finish = "stop"
                return
            tokens.append(token)
            if stop(tokens):
                self.finish = "stop"
                return
            # The first comparison is cheap, and nearly always enough.
            if len(tokens) >= n_most and self.n_left <= 0:
                self.finish = "length"
                return
