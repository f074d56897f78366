"""A draft model as its drafter sees it: whatever its own vocabulary, it drafts tokens of the
target.

Source: Leviathan et al. 2023, Chen et al. 2023 for drafting with a second, smaller model.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from codespec.backends.base import CancelledError, Target
from codespec.native import common_prefix
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
from codespec.verify.accept import propose
from codespec.verify.sampling import Sampler

DRAFT_MODEL = Source.register("draft-model")

OnPass = Callable[[int, float], None]
"""Callback after each pass of the draft model: (tokens in its own vocabulary, milliseconds)."""


def ignore_pass(n_tokens: int, ms: float) -> None:
    """`OnPass` that does nothing."""


class DraftModel(Protocol):
    """A draft model and its KV cache, at one place of a text. One thread only.

    After `catch_up`, `next` or `draw` continue the prompt and what was emitted by then.
    """

    @property
    def n_cached(self) -> int:
        """Number of tokens in the KV cache, in the draft model's own vocabulary."""
        ...

    @property
    def n_unread(self) -> int:
        """Tokens of the prompt that the KV cache lacks, as far as is known: what `read` would
        prefill."""
        ...

    @property
    def is_sampling(self) -> bool:
        """True if the request may be drafted by true samples: `draw` instead of `next`."""
        ...

    def begin(self, context: Context) -> None:
        """Start a request. Makes no pass yet."""
        ...

    def fits(self, n_tokens: int) -> bool:
        """True if the draft model's own context window, which may be shorter than the target's, has
        room for prompt, output and draft of together `n_tokens` tokens of the target."""
        ...

    def read(self, interrupted: Callable[[], bool]) -> None:
        """Prefill the prompt. Raises: CancelledError once `interrupted` returns True; what is in
        the KV cache by then stays."""
        ...

    def catch_up(self, emitted: Tokens, interrupted: Callable[[], bool]) -> None:
        """Prefill the prompt and what was emitted. Raises: CancelledError, as `read`."""
        ...

    def next(self) -> tuple[int, float] | None:
        """Draft one more token greedily: (the likeliest token, the draft model's own probability of
        it). It is context for the next call. None where the text ends, or no token is certain."""
        ...

    def draw(self, n: int) -> tuple[list[int], list[Logits]]:
        """Draft by sampling: (n tokens drawn one after the other, the distribution of each,
        (n_vocab,)). Both empty where the model cannot draft."""
        ...


class DraftPasses:
    """Timed passes of a draft model, and the tokens that its KV cache is known to hold."""

    def __init__(self, model: Target, on_pass: OnPass) -> None:
        self.model = model
        self._on_pass = on_pass
        self._read = NO_TOKENS

    def n_known(self, tokens: Tokens) -> int:
        """Length of the longest prefix of `tokens` in the KV cache."""
        return common_prefix(self._read, tokens)

    def read(self, tokens: Tokens, interrupted: Callable[[], bool]) -> Tokens:
        """Prefill all but the last few tokens, which are returned. Raises: CancelledError."""
        self._read = NO_TOKENS
        try:
            self.model.prefill(tokens, interrupted)
        except CancelledError:
            self._read = tokens[: self.model.n_cached]
            raise
        self._read = tokens
        return tokens[self.model.n_cached :]

    def read_all(self, tokens: Tokens, interrupted: Callable[[], bool]) -> None:
        """Prefill all but the very last token. Raises: CancelledError."""
        rest = self.read(tokens, interrupted)[:-1]
        if len(rest):
            self.model.decode(rest, NO_DRAFT)
            self.model.keep([])

    def decode(self, tail: Tokens, chain: Draft) -> LogitsRows:
        """Make a pass over `tail`, and a chain that is dropped from the KV cache afterwards."""
        start = time.perf_counter()
        rows = self.model.decode(tail, chain)
        self.model.keep([])
        self._on_pass(len(tail) + len(chain), (time.perf_counter() - start) * 1e3)
        return rows


class SameVocabularyModel:
    """`DraftModel` over a model with the target's vocabulary.

    After each verdict the KV cache is rolled back to the longest prefix that it shares with the
    target's output.
    """

    def __init__(self, model: Target, on_pass: OnPass = ignore_pass) -> None:
        self._passes = DraftPasses(model, on_pass)
        self._info = model.info
        self._prompt = NO_TOKENS
        self._sampler = Sampler(SamplingParams())
        self._n_known = 0  # tokens of the request that are in the KV cache
        self._tail = NO_TOKENS  # tokens of prompt and output that the KV cache lacks
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
        # Sampled drafts are accepted more often, with sum(min(p, q)) in place of the p of one
        # token, but the text depends on them.
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
        self._append(token)
        self._is_over = token in self._info.eog
        return token, probability(logits, token)

    def draw(self, n: int) -> tuple[list[int], list[Logits]]:
        drawn: list[int] = []
        distributions: list[Logits] = []
        for _ in range(n):
            q = self._sampler.distribution(self._logits(), self._history).astype(np.float32)
            drawn.append(propose(q, self._sampler, len(self._history)))
            distributions.append(q)
            self._append(drawn[-1])
        return drawn, distributions

    def _logits(self) -> Logits:
        return self._passes.decode(self._tail, NO_DRAFT).row(0)

    def _append(self, token: int) -> None:
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
    """Probability of one token by the softmax of its logits (n_vocab,)."""
    # Under a penalty the token need not be the likeliest: no overflow then.
    return float(1.0 / np.exp(np.minimum(logits - logits[token], 80.0)).sum())
