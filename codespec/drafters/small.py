"""A draft model as its drafter sees it: whatever its own vocabulary, its words are tokens of the
target."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from codespec.backends.base import CancelledError, Target
from codespec.native import common_prefix
from codespec.sampling import Sampler
from codespec.types import (
    NO_DRAFT,
    NO_TOKENS,
    Context,
    Draft,
    Logits,
    LogitsRows,
    SamplingParams,
    Source,
    Tokens,
)
from codespec.verify import propose

DRAFT_MODEL = Source.register("draft-model")

OnPass = Callable[[int, float], None]
"""Told of each pass of the draft model: its own tokens, milliseconds."""


def unheard(n_tokens: int, ms: float) -> None:
    """`OnPass` of who need not know."""


class SmallModel(Protocol):
    """A draft model at one place of a text. One thread only.

    After `catch_up`, `next` or `draw` go on from what was emitted by then.
    """

    @property
    def n_cached(self) -> int:
        """Tokens of its own in its cache."""
        ...

    @property
    def n_unread(self) -> int:
        """Tokens of the prompt that its cache lacks, as far as is known."""
        ...

    @property
    def is_sampling(self) -> bool:
        """Whether its drafts may be true samples: `draw` instead of `next`."""
        ...

    def begin(self, context: Context) -> None:
        """At this place. Reads nothing yet."""
        ...

    def fits(self, n_tokens: int) -> bool:
        """Whether its own context, which may be shorter than the target's, has room for a prompt,
        what was emitted and a draft of so many tokens of the target."""
        ...

    def read(self, interrupted: Callable[[], bool]) -> None:
        """The prompt into the cache. What is read when `interrupted` turns true is kept. Raises:
        CancelledError."""
        ...

    def catch_up(self, emitted: Tokens, interrupted: Callable[[], bool]) -> None:
        """Read the prompt and what was emitted. Raises: CancelledError, as `read`."""
        ...

    def next(self) -> tuple[int, float] | None:
        """(likeliest token, the model's own probability of it) after what was said so far, of which
        it then is a part; None where the text ends, or no token is certain."""
        ...

    def draw(self, n: int) -> tuple[list[int], list[Logits]]:
        """(n tokens drawn one after the other, the law of each); none where nothing is known."""
        ...


class Passes:
    """The passes of a draft model, timed, and what its cache is known to hold."""

    def __init__(self, model: Target, on_pass: OnPass) -> None:
        self.model = model
        self._on_pass = on_pass
        self._read = NO_TOKENS

    def n_known(self, tokens: Tokens) -> int:
        """How many of these are in the cache."""
        return common_prefix(self._read, tokens)

    def read(self, tokens: Tokens, interrupted: Callable[[], bool]) -> Tokens:
        """All but the last few, which are returned. Raises: CancelledError."""
        self._read = NO_TOKENS
        try:
            self.model.prefill(tokens, interrupted)
        except CancelledError:
            self._read = tokens[: self.model.n_cached]
            raise
        self._read = tokens
        return tokens[self.model.n_cached :]

    def read_all(self, tokens: Tokens, interrupted: Callable[[], bool]) -> None:
        """All but the very last one. Raises: CancelledError."""
        rest = self.read(tokens, interrupted)[:-1]
        if len(rest):
            self.model.decode(rest, NO_DRAFT)
            self.model.keep([])

    def decode(self, tail: Tokens, chain: Draft) -> LogitsRows:
        start = time.perf_counter()
        rows = self.model.decode(tail, chain)
        self.model.keep([])
        self._on_pass(len(tail) + len(chain), (time.perf_counter() - start) * 1e3)
        return rows


class SharedVocabulary:
    """`SmallModel` over a model whose tokens are the target's.

    The cache follows the target's output: whatever was accepted or rejected, it is cut back to the
    longest prefix that still holds.
    """

    def __init__(self, model: Target, on_pass: OnPass = unheard) -> None:
        self._passes = Passes(model, on_pass)
        self._info = model.info
        self._prompt = NO_TOKENS
        self._sampler = Sampler(SamplingParams())
        self._n_known = 0  # of the request's tokens, in the cache
        self._tail = NO_TOKENS  # of what was said, not in the cache
        self._is_over = True
        self._history: list[int] = []

    @property
    def n_cached(self) -> int:
        return self._passes.model.n_cached

    @property
    def n_unread(self) -> int:
        return len(self._prompt) - self._n_known

    @property
    def is_sampling(self) -> bool:
        return not self._sampler.greedy

    def begin(self, context: Context) -> None:
        self._prompt = context.prompt
        self._n_known = self._passes.n_known(context.prompt)
        # Samples are accepted more often, with min(p, q) of each token in place of p of one, but
        # the text depends on them.
        sampling = context.sampling
        if not sampling.any_seed:
            sampling = dataclasses.replace(sampling, temperature=0.0)
        self._sampler = Sampler(sampling)

    def fits(self, n_tokens: int) -> bool:
        return n_tokens < self._info.n_ctx

    def read(self, interrupted: Callable[[], bool]) -> None:
        self._passes.read_all(self._prompt, interrupted)

    def catch_up(self, emitted: Tokens, interrupted: Callable[[], bool]) -> None:
        tokens = np.concatenate([self._prompt, emitted])
        self._tail = self._passes.read(tokens, interrupted)
        self._n_known = len(tokens)
        self._history = emitted.tolist()
        self._is_over = False

    def next(self) -> tuple[int, float] | None:
        if self._is_over:
            return None
        logits = self._logits()
        token = self._sampler.sample(_Row(logits), 0, self._history)
        self._say(token)
        self._is_over = token in self._info.eog
        return token, probability(logits, token)

    def draw(self, n: int) -> tuple[list[int], list[Logits]]:
        drawn: list[int] = []
        laws: list[Logits] = []
        for _ in range(n):
            law = self._sampler.distribution(self._logits(), self._history).astype(np.float32)
            drawn.append(propose(law, self._sampler, len(self._history)))
            laws.append(law)
            self._say(drawn[-1])
        return drawn, laws

    def _logits(self) -> Logits:
        return self._passes.decode(self._tail, NO_DRAFT).row(0)

    def _say(self, token: int) -> None:
        self._history.append(token)
        self._tail = np.array([token], np.int32)


class _Row:
    """One row of logits as `LogitsRows`."""

    def __init__(self, logits: Logits) -> None:
        self._logits = logits

    def row(self, i: int) -> Logits:
        return self._logits

    def argmax(self, i: int) -> int:
        return int(self._logits.argmax())


def probability(logits: Logits, token: int) -> float:
    """The softmax of one token."""
    # Under a penalty the token need not be the likeliest: no overflow then.
    return float(1.0 / np.exp(np.minimum(logits - logits[token], 80.0)).sum())
