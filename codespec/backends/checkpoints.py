"""States of a KV cache put aside, found again by the tokens they hold.

Pure data, like `kv.py`: what a state is and how it is restored is the backend's business.
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
"""States that stay whatever they take: of two generations that take turns, and of one that
interrupted them."""

_NOTHING: State = np.empty(0, np.uint8)


@dataclass(slots=True, eq=False)
class Checkpoint:
    """tokens: (n,) what the state has read. state: as the backend wrote it; empty where it is
    lost, and the tokens have to be read again."""

    tokens: Tokens
    state: State

    @property
    def n_bytes(self) -> int:
        return self.tokens.nbytes + self.state.nbytes


class Checkpoints:
    """The states used last, in at most `max_bytes`. In memory only: nothing is ever written out.

    States that are held count, too, and others make room for them: what waits for one goes on
    from it unchanged, to the last digit. Where they alone take more, nothing else is kept, and of
    more than `LEAST_HELD` those held longest are lost.

    can_truncate: whether a restored state can be cut back, so that any common prefix is of use;
        else only states of which every token is wanted.
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
        return sum(c.n_bytes for c in (*self._kept, *self._held))

    @property
    def room(self) -> int:
        """Bytes of the largest state that `add` would keep."""
        return self._max_bytes - sum(c.n_bytes for c in self._held)

    def find(self, tokens: Tokens) -> tuple[int, Checkpoint | None]:
        """(how many of `tokens` it saves, the state that saves most), (0, None) without any."""
        n_best, best = 0, None
        for checkpoint in self._kept:
            n = common_prefix(checkpoint.tokens, tokens)
            if not self._can_truncate and n < len(checkpoint.tokens):
                continue
            if n > n_best:
                n_best, best = n, checkpoint
        return n_best, best

    def take(self, checkpoint: Checkpoint) -> State:
        """Its state. One that can be cut back moves into the cache and is kept there."""
        self._kept.remove(checkpoint)
        if not self._can_truncate:
            self._kept.append(checkpoint)
        return checkpoint.state

    def add(self, tokens: Tokens, state: State) -> None:
        """Keep a state; one that this one makes superfluous goes, and the oldest beyond the
        budget."""
        added = Checkpoint(tokens.copy(), state)
        self._kept = [c for c in self._kept if not self._is_superfluous(c.tokens, tokens)]
        if added.n_bytes <= self.room:
            self._kept.append(added)
            self._make_room()

    def hold(self, tokens: Tokens, state: State) -> Checkpoint:
        """Keep a state until `let_go` or while there is room, for whoever asks; `find` does not
        know it."""
        held = Checkpoint(tokens.copy(), state)
        self._held.append(held)
        while len(self._held) > LEAST_HELD and self.room < 0:
            self._held.pop(0).state = _NOTHING
        self._make_room()
        return held

    def let_go(self, held: Checkpoint) -> None:
        """No effect on one that was let go, or lost."""
        if held in self._held:
            self._held.remove(held)

    def _make_room(self) -> None:
        while self._kept and self.n_bytes > self._max_bytes:
            self._kept.pop(0)

    def _is_superfluous(self, old: Tokens, new: Tokens) -> bool:
        n = common_prefix(old, new)
        if not self._can_truncate:
            return n == len(old) == len(new)
        # The same document, an edit ago.
        return n >= 0.75 * len(old)
