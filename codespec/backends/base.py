"""The contract of backends: what computes the model that completes.

A *target* is a model whose passes we verify in: speculative decoding (Leviathan et al. 2023, Chen
et al. 2023) needs the logits after every drafted token and a KV cache that can give drafted tokens
back. What a target can do beyond that is said by a value, its `Capabilities`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from codespec.backends.checkpoints import Checkpoint, State
from codespec.native import Drafting, Ends, Stretch
from codespec.types import NO_DRAFT, NO_TOKENS, Draft, LogitsRows, ModelInfo, Tokens


class CancelledError(Exception):
    """A newer request took this one's place. Never shown to users."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target can do.

    max_draft:    most drafted nodes one pass takes, 0 or more.
    max_leaves:   most branches of a drafted tree; 1: chains only.
    max_branches: most texts that it continues side by side, 1 or more, see `Target.fork`.
    rolls_back:   True if the KV cache drops rejected tokens and nothing else. False if it loses
                  the whole pass where its draft was not wholly accepted (recurrent layers): what
                  the pass read and what was accepted is then read again.
    has_threads:  True if it computes on threads whose number can be changed between passes.
    has_hidden_states: True if it keeps hidden states of what it reads, for a layer of its own that
                  drafts (MTP head).
    has_stretches: True if it can make several greedy passes in one native call, see
                  `Target.decode_stretch`; the call cuts the cache natively, and hands out no hidden
                  states between its passes.
    """

    max_draft: int = 64
    max_leaves: int = 1
    max_branches: int = 1
    rolls_back: bool = True
    has_threads: bool = False
    has_hidden_states: bool = False
    has_stretches: bool = False


class Target:
    """A language model that owns its KV cache. One thread only.

    The cache always holds a prefix of the committed tokens, plus, between `decode` and `keep`,
    the drafted nodes. A subclass needs `info`, `can`, `n_cached`, `prefill`, `decode` and `keep`;
    the defaults of the other methods serve a target that cannot do more.
    """

    info: ModelInfo
    can: Capabilities = Capabilities()
    n_threads: int = 1
    busy_s: float = 0.0
    """Time spent in passes up to now, seconds."""
    read_ms: float = 0.0
    """Milliseconds a token, of the part of a prompt that was read most quickly; 0: none was."""

    @property
    def n_cached(self) -> int:
        """Number of committed tokens in the KV cache."""
        raise NotImplementedError

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        """Make the cache a prefix of `tokens`, reusing the longest common prefix, and decode all
        but the last few. Afterwards 1 <= len(tokens) - n_cached <= a batch.

        Returns: how many tokens were reused.

        Raises: CancelledError of this module when `cancelled` turns true on the way.
        """
        raise NotImplementedError

    def decode(self, tokens: Tokens, draft: Draft) -> LogitsRows:
        """One pass over the uncached committed `tokens` (at least 1) and a draft after them.

        Raises: CancelledError, as `prefill`, where the pass reads the rest of a prompt.
        """
        raise NotImplementedError

    def keep(self, path: Sequence[int]) -> None:
        """Commit these nodes of the last draft, drop the others from the cache; `n_cached` says
        what is left."""
        raise NotImplementedError

    def read_ahead(self, tokens: Tokens, cancelled: Callable[[], bool]) -> None:
        """Read what `prefill` and the first pass would read of `tokens`; parts that are read when
        `cancelled` turns true stay in the cache. Raises: CancelledError."""
        self.prefill(tokens, cancelled)

    def hold(self) -> Checkpoint:
        """What the cache holds, for `take_back`; in memory until `let_go`, or until too many
        others are held."""
        return Checkpoint(NO_TOKENS, _NO_STATE)

    def take_back(self, held: Checkpoint) -> None:
        """Make the cache what it was at `hold`, to the last digit; what is in it is put aside. No
        effect where that was lost: it is read again."""

    def let_go(self, held: Checkpoint) -> None:
        """The state will not be taken back any more."""

    def set_threads(self, n_threads: int) -> None:
        """Compute on so many threads from the next pass on; see `Capabilities.has_threads`."""

    def fork(self) -> None:
        """Begin `can.max_branches` branches, each of which holds the committed tokens."""

    def decode_branches(self, branches: Sequence[int], tokens: Sequence[int]) -> LogitsRows:
        """One pass over a further token of each of these branches, which are equally long; row i
        follows token i."""
        rows = self.decode(np.asarray(tokens, np.int32), NO_DRAFT)
        self.keep(())
        return rows

    def join(self) -> None:
        """Drop all branches. The next call is `prefill`, which finds the committed tokens."""

    def decode_stretch(
        self,
        drafting: Drafting | None,
        emitted: Sequence[int],
        last: int,
        ends: Ends,
        n_tokens: int,
        n_passes: int,
        n_draft: int,
        ms: float,
        interrupted: Callable[[], bool],
    ) -> Stretch:
        """As `decode` and `keep`, pass after pass, with the likeliest tokens; only where
        `can.has_stretches`.

        drafting: what is drafted from, after `emitted`; None: nothing is.
        last:     the committed token that is not cached yet, the only one.
        n_tokens, n_passes: emitted and done at most. n_draft: tokens of one pass. ms: no pass
        begins later.
        interrupted: True to leave off, asked each ten milliseconds or before the next pass.

        Raises: ModelError, CancelledError, as `decode`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give back memory. No other call may follow."""


class DraftingLayer(Target):
    """A target's own layer that predicts the token after next (MTP head), as a model that drafts:
    it never keeps a draft, and gives the logits after a pass's last token alone."""

    def knows(self, tokens: Tokens) -> bool:
        """True if it can say what follows a text: the target has read all but its last token."""
        raise NotImplementedError


_NO_STATE: State = np.empty(0, np.uint8)
