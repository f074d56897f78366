"""Saving and restoring the KV cache of a context's committed tokens, as bytes.

For layers with sliding-window attention llama.cpp writes no more of a sequence than its next token
attends to. Such a state can be continued but not rolled back: tokens that would come into the
window again are missing, without an error. Of a whole context it writes all. That has another
header; the rest is the same, and can be read as the state of the only sequence.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from codespec.backends.checkpoints import State
from codespec.backends.llama.batch import MAIN
from codespec.backends.llama.loader import lib
from codespec.backends.llama.rollback import is_recurrent

_N_HEAD = 8
"""Bytes of the header of a sequence's state: a magic number and the sequence."""


class States:
    """Reads and restores the state of one context, which must be empty at first. One thread
    only."""

    def __init__(self, model: Any, context: Any) -> None:
        self._context = context
        # Recurrent states cannot be cut back anyway.
        self._is_whole = lib.llama_model_n_swa(model) > 0 and not is_recurrent(model)
        self._head = self._of_sequence()[:_N_HEAD].copy()

    @property
    def n_bytes(self) -> int:
        """Size of the state that `read` returns, or a few bytes more."""
        if self._is_whole:
            return int(lib.llama_state_get_size(self._context))
        return int(lib.llama_state_seq_get_size(self._context, MAIN))

    def read(self) -> State:
        """The state of the committed tokens; empty where llama.cpp fails. No other sequence may be
        in use."""
        return self._of_context() if self._is_whole else self._of_sequence()

    def restore(self, state: State) -> bool:
        """Restore a state into an empty KV cache. False where llama.cpp refuses it."""
        return bool(lib.llama_state_seq_set_data(self._context, _pointer(state), len(state), MAIN))

    def _of_sequence(self) -> State:
        state = np.empty(lib.llama_state_seq_get_size(self._context, MAIN), np.uint8)
        n = lib.llama_state_seq_get_data(self._context, _pointer(state), len(state), MAIN)
        return state[:n]

    def _of_context(self) -> State:
        room = np.empty(_N_HEAD + self.n_bytes, np.uint8)  # the other head may be shorter
        whole = room[_N_HEAD:]
        n = int(lib.llama_state_get_data(self._context, _pointer(whole), len(whole)))
        if not n:
            return whole[:0]
        # Its own head is the architecture's name, after the length of that.
        start = 4 + int(whole[:4].view(np.uint32)[0])
        state = room[start : _N_HEAD + n]
        state[:_N_HEAD] = self._head
        return state


def _pointer(state: State) -> Any:
    return state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
