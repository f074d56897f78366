"""How a cache gives up its last tokens: drafted ones that were rejected, or text that was edited.

Attention drops the keys and values of a token. A recurrent layer has one state instead, which each
token changes for good. So what the state was before a draft, and behind the last prompt, is kept as
further sequences: to keep one costs a copy when the state is next written to. Tokens that were
accepted since are read again, together with the next pass's.

llama.cpp can keep the state after each token of a pass (`n_rs_seq`), for some architectures. That
makes every pass dearer, undrafted ones too, and takes as many states in memory: see bench/LOG.md.
"""

from __future__ import annotations

from typing import Any, Protocol

from codespec.backends.llama.batch import MAIN, MAX_LEAVES
from codespec.backends.llama.loader import lib

_DRAFTED, _PROMPTED = 1, 2
"""Sequences that keep the state of before the last draft, and of behind the last prompt."""


class Undo(Protocol):
    """Cuts the committed tokens of one context. One thread only."""

    is_total: bool
    """Whether any number of tokens can be cut. Only then can there be trees, other branches, and
    drafts in native code."""

    def prompted(self, n: int) -> None:
        """The `n` cached tokens are what is known for now to be right."""
        ...

    def drafting(self, n: int) -> None:
        """A pass with a draft follows, behind `n` cached tokens."""
        ...

    def reach(self, n: int, n_cached: int) -> int:
        """How many tokens `cut` would leave, were it called now."""
        ...

    def cut(self, n: int) -> int:
        """Leave at most the first `n` tokens, none at all for 0. Returns: how many are left."""
        ...


class Forget:
    """Attention alone: token by token."""

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


class GoBack:
    """To the state of before a draft, or of behind a prompt."""

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
    """Whether a model has states that tokens cannot be taken out of."""
    return lib.llama_model_is_recurrent(handle) or lib.llama_model_is_hybrid(handle)


def n_sequences(handle: Any) -> int:
    """Of a context that `undo_of` is for; each holds a state in memory where there are any."""
    return 3 if is_recurrent(handle) else 1 + MAX_LEAVES


def undo_of(handle: Any, memory: Any) -> Undo:
    return GoBack(memory) if is_recurrent(handle) else Forget(memory)
