"""What contexts of one model have in common."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from codespec import pulse
from codespec.backends.base import Capabilities, KvType
from codespec.backends.llama import kernels
from codespec.backends.llama.batch import Batch
from codespec.backends.llama.loader import LoadedModel, get_logits, lib
from codespec.native import STEP_COUNTER, Rows

_COUNT_STEP, _NO_CALLBACK = lib.ggml_abort_callback(STEP_COUNTER), lib.ggml_abort_callback()
_NO_FLASH_ATTENTION, _FLASH_ATTENTION = 0, 1


def context_params(
    model: LoadedModel, n_ctx: int, n_batch: int, n_threads: int, kv_type: KvType
) -> Any:
    """With one cache for all sequences."""
    params = lib.llama_context_default_params()
    params.n_ctx = n_ctx
    params.n_batch = params.n_ubatch = min(n_batch, n_ctx)
    params.kv_unified = True
    if kv_type == "q8_0":
        params.type_k = params.type_v = lib.GGML_TYPE_Q8_0
        params.flash_attn_type = _FLASH_ATTENTION
    elif model.backend == "cpu":
        # llama.cpp's flash attention on a CPU costs linearly per query at verification widths,
        # and its kernels differ by width and thread count; ours neither.
        is_ours = kernels.attend() and model.has_plain_attention()
        params.flash_attn_type = _FLASH_ATTENTION if is_ours else _NO_FLASH_ATTENTION
    params.n_threads = params.n_threads_batch = n_threads
    return params


class Context:
    """A context of llama.cpp's, its batch, and who computes. Close it."""

    _ctx: Any
    _batch: Batch
    n_threads: int
    can: Capabilities

    def count_steps(self) -> None:
        """Parts of passes that a CPU makes are steps of this process; a GPU's passes are short."""
        count = _COUNT_STEP if self.can.has_threads else _NO_CALLBACK
        lib.llama_set_abort_callback(self._ctx, count, pulse.steps_address())

    def pass_over(self, batch: Any) -> int:
        """llama.cpp's code, 0 where all went well."""
        pulse.computing(self.n_threads)
        code = int(lib.llama_decode(self._ctx, batch))
        pulse.computing(1)
        pulse.step()
        return code

    def set_threads(self, n_threads: int) -> None:
        """From the next pass on. Without flash attention logits do not depend on it."""
        if n_threads != self.n_threads:
            lib.llama_set_n_threads(self._ctx, n_threads, n_threads)
            self.n_threads = n_threads

    def close(self) -> None:
        if self._ctx:
            self._batch.close()
            lib.llama_free(self._ctx)
            self._ctx = None


class Numbers:
    """Those of llama.cpp's at an address, as an (n, width) array: to make one takes as long as to
    look at it, and it is mostly the same place."""

    def __init__(self, n: int, width: int) -> None:
        self._shape = n, width
        self._rows: npt.NDArray[np.float32] = np.zeros((0, width), np.float32)
        self._address = 0

    def at(self, address: int) -> npt.NDArray[np.float32] | None:
        """None for 0: there are none."""
        if not address:
            return None
        if address != self._address:
            pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
            self._rows, self._address = np.ctypeslib.as_array(pointer, self._shape), address
        return self._rows


class LogitsView:
    """llama.cpp's buffer of at most `n` rows of logits. Only those asked for in the last pass
    exist, and only until the next."""

    def __init__(self, n: int, n_vocab: int) -> None:
        self._numbers = Numbers(n, n_vocab)
        self._of: npt.NDArray[np.float32] = np.zeros((0, n_vocab), np.float32)
        self._rows = Rows(self._of)

    def of(self, context: Any) -> Rows:
        """Waits for a GPU."""
        logits = self._numbers.at(get_logits(context))
        assert logits is not None, "a pass that asked for them has logits"
        if logits is not self._of:
            self._rows, self._of = Rows(logits), logits
        return self._rows
