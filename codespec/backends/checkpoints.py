"""Saved states of a KV cache, found again by their tokens (prefix caching).

Pure data, like `kv.py`: the backend writes and restores states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codespec.native import common_prefix
from codespec.types import Tokens

State = npt.NDArray[np.uint8]

LEAST_HELD = 3
"""Number of checkpoints that stay whatever memory they take: of two generations that take turns,
and of one that interrupted them."""

_NOTHING: State = np.empty(0, np.uint8)


MOST_KEPT = 256
"""Largest number of saved states: each is compared with each prompt."""


@dataclass(slots=True, eq=False)
class Checkpoint:
    """A saved state of a KV cache.

    tokens: (n,) tokens that the state holds.
    state: bytes as the backend wrote them; empty where the state was dropped, so that the tokens
        have to be prefilled again.
    """

    tokens: Tokens
    state: State

    @property
    def n_bytes(self) -> int:
        """Bytes of memory."""
        return self.tokens.nbytes + self.state.nbytes


class Checkpoints:
    """LRU cache of at most `MOST_KEPT` saved states, in at most `max_bytes` of memory; nothing is
    written to disk.

    Held states count, too, and others make room for them: a paused generation resumes from its own
    unchanged, to the bit. Where held states alone take more, no others are kept, and of more than
    `LEAST_HELD` the oldest are dropped.

    can_truncate: True if a restored state can be rolled back, so that any common prefix is of use;
        False: only states of which every token is wanted are.
    """

    def __init__(self, max_bytes: int, *, can_truncate: bool) -> None:
        self._max_bytes = max_bytes
        self._can_truncate = can_truncate
        self._kept: list[Checkpoint] = []  # least recently used first
        self._held: list[Checkpoint] = []

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self._kept)

    @property
    def n_bytes(self) -> int:
        """Bytes of memory, held states included."""
        return sum(c.n_bytes for c in (*self._kept, *self._held))

    @property
    def room(self) -> int:
        """Bytes of the largest state that `add` would keep."""
        return self._max_bytes - sum(c.n_bytes for c in self._held)

    def find(self, tokens: Tokens) -> tuple[int, Checkpoint | None]:
        """The state that saves most prefill of `tokens`: (number of tokens saved, state); (0, None)
        without any."""
        n_best, best = 0, None
        for checkpoint in self._kept:
            n = common_prefix(checkpoint.tokens, tokens)
            if not self._can_truncate and n < len(checkpoint.tokens):
                continue
            if n > n_best:
                n_best, best = n, checkpoint
        return n_best, best

    def take(self, checkpoint: Checkpoint) -> State:
        """Take a state to restore it. One that can be rolled back leaves this cache: it lives on in
        the KV cache."""
        self._kept.remove(checkpoint)
        if not self._can_truncate:
            self._kept.append(checkpoint)
        return checkpoint.state

    def add(self, tokens: Tokens, state: State) -> None:
        """Save a state of `tokens`. States that it makes superfluous are dropped, and the least
        recently used beyond the budget."""
        added = Checkpoint(tokens.copy(), state)
        self._kept = [c for c in self._kept if not self._is_superfluous(c.tokens, tokens)]
        if added.n_bytes <= self.room:
            self._kept.append(added)
            self._make_room()

    def hold(self, tokens: Tokens, state: State) -> Checkpoint:
        """Save a state until `release`, or while there is room; `find` never returns it."""
        held = Checkpoint(tokens.copy(), state)
        self._held.append(held)
        while len(self._held) > LEAST_HELD and self.room < 0:
            self._held.pop(0).state = _NOTHING
        self._make_room()
        return held

    def release(self, held: Checkpoint) -> None:
        """Drop a held state; no effect where it was dropped already."""
        if held in self._held:
            self._held.remove(held)

    def _make_room(self) -> None:
        while len(self._kept) > MOST_KEPT or (self._kept and self.n_bytes > self._max_bytes):
            self._kept.pop(0)

    def _is_superfluous(self, old: Tokens, new: Tokens) -> bool:
        n = common_prefix(old, new)
        if not self._can_truncate:
            return n == len(old) == len(new)
        # The same document, an edit ago.
        return n >= 0.75 * len(old)
