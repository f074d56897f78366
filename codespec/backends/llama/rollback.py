"""Rollback of a KV cache's last tokens: rejected drafts, or text that was edited.

Attention layers drop the keys and values of a token. A recurrent layer has one state instead, which
each token changes for good. So the states before a draft and behind the last prompt are kept as
further sequences: keeping one costs a copy when the state is next written to. Tokens accepted since
are recomputed, together with the next pass's.

llama.cpp can keep the state after each token of a pass (`n_rs_seq`), for some architectures. That
makes every pass more expensive, also without a draft, and takes as many states in memory: see
bench/log.
"""

from __future__ import annotations

from typing import Any, Protocol

from codespec.backends.llama.batch import MAIN, MAX_LEAVES
from codespec.backends.llama.loader import lib

_DRAFTED, _PROMPTED = 1, 2
"""Sequences that keep the state before the last draft, and the one behind the last prompt."""


class Rollback(Protocol):
    """Rolls back the committed tokens of one context. One thread only."""

    is_total: bool
    """True if any number of tokens can be dropped. Draft trees, branches and native stretches need
    that."""

    def prompted(self, n: int) -> None:
        """Note the end of a prefill: a state to roll back to, of `n` cached tokens."""
        ...

    def drafting(self, n: int) -> None:
        """Note that a pass with a draft follows, behind `n` cached tokens."""
        ...

    def reach(self, n: int, n_cached: int) -> int:
        """Number of tokens that `cut(n)` would leave of `n_cached`."""
        ...

    def cut(self, n: int) -> int:
        """Roll back to at most the first `n` tokens, to none for 0. Returns: the number left."""
        ...


class AttentionRollback:
    """Rollback of models with attention layers alone, token by token."""

    is_total = True

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def prompted(self, n: int) -> None:
        pass

    def drafting(self, n: int) -> None:
        pass

    def reach(self, n: int, n_cached: int) -> int:
        return n

    def cut(self, n: int) -> int:
        if lib.llama_memory_seq_rm(self._memory, MAIN, n or -1, -1):
            return n
        _empty(self._memory, MAIN)  # a memory of another kind
        return 0


class RecurrentRollback:
    """Rollback of models with recurrent layers: to the state before a draft, or behind a prompt."""

    is_total = False

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._n_kept = {_DRAFTED: 0, _PROMPTED: 0}  # tokens in these sequences

    def prompted(self, n: int) -> None:
        self._keep(_PROMPTED, n)

    def drafting(self, n: int) -> None:
        self._keep(_DRAFTED, n)

    def reach(self, n: int, n_cached: int) -> int:
        return n if n == n_cached else max(k for k in (0, *self._n_kept.values()) if k <= n)

    def cut(self, n: int) -> int:
        for sequence, n_kept in self._n_kept.items():
            if n_kept > n:
                self._n_kept[sequence] = 0
                _empty(self._memory, sequence)
        sequence = max(self._n_kept, key=lambda s: self._n_kept[s])
        self._copy(sequence, MAIN)
        return self._n_kept[sequence]

    def _keep(self, sequence: int, n: int) -> None:
        if n != self._n_kept[sequence]:
            self._copy(MAIN, sequence)
            self._n_kept[sequence] = n

    def _copy(self, of: int, to: int) -> None:
        _empty(self._memory, to)
        lib.llama_memory_seq_cp(self._memory, of, to, -1, -1)


def _empty(memory: Any, sequence: int) -> None:
    lib.llama_memory_seq_rm(memory, sequence, -1, -1)


def is_recurrent(handle: Any) -> bool:
    """True if a model has recurrent layers, whose state no token can be taken out of."""
    return lib.llama_model_is_recurrent(handle) or lib.llama_model_is_hybrid(handle)


def n_sequences(handle: Any) -> int:
    """Number of sequences of a context for `rollback_of`; recurrent layers keep a state of each."""
    return 3 if is_recurrent(handle) else 1 + MAX_LEAVES


def rollback_of(handle: Any, memory: Any) -> Rollback:
    """The rollback of a model's context; memory: its `llama_memory_t`."""
    return RecurrentRollback(memory) if is_recurrent(handle) else AttentionRollback(memory)
