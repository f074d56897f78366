"""Base of llama.cpp contexts: parameters, passes, logits. Shared by targets and MTP heads."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from codespec.backends.base import Capabilities, KvType
from codespec.backends.llama import kernels
from codespec.backends.llama.batch import Batch
from codespec.backends.llama.loader import LoadedModel, get_logits, lib
from codespec.native import STEP_COUNTER, Rows
from codespec.system import pulse

_COUNT_STEP, _NO_CALLBACK = lib.ggml_abort_callback(STEP_COUNTER), lib.ggml_abort_callback()
_NO_FLASH_ATTENTION, _FLASH_ATTENTION = 0, 1


def context_params(
    model: LoadedModel, n_ctx: int, n_batch: int, n_threads: int, kv_type: KvType
) -> Any:
    """`llama_context_params`, with a unified KV cache for all sequences.

    n_batch: most tokens of a pass. n_threads: CPU threads. kv_type: number type of the KV cache.
    """
    params = lib.llama_context_default_params()
    params.n_ctx = n_ctx
    params.n_batch = params.n_ubatch = min(n_batch, n_ctx)
    params.kv_unified = True
    if kv_type == "q8_0":
        params.type_k = params.type_v = lib.GGML_TYPE_Q8_0
        params.flash_attn_type = _FLASH_ATTENTION
    elif model.backend == "cpu":
        # llama.cpp's flash attention on a CPU costs linearly per query at verification widths,
        # and its kernels differ by width and thread count; ours do neither.
        is_ours = kernels.computes_attention() and model.has_plain_attention()
        params.flash_attn_type = _FLASH_ATTENTION if is_ours else _NO_FLASH_ATTENTION
    params.n_threads = params.n_threads_batch = n_threads
    return params


class LlamaContext:
    """A `llama_context`, its batch and its number of threads. To be closed."""

    _ctx: Any
    _batch: Batch
    n_threads: int
    can: Capabilities

    def count_steps(self) -> None:
        """Count the parts of CPU passes as steps of this process (`pulse`); GPU passes are
        short."""
        count = _COUNT_STEP if self.can.has_threads else _NO_CALLBACK
        lib.llama_set_abort_callback(self._ctx, count, pulse.steps_address())

    def run_pass(self, batch: Any) -> int:
        """Make a pass over a `llama_batch`. Returns: llama.cpp's status code, 0 for success."""
        pulse.computing(self.n_threads)
        code = int(lib.llama_decode(self._ctx, batch))
        pulse.computing(1)
        pulse.step()
        return code

    def set_threads(self, n_threads: int) -> None:
        """See `Target.set_threads`. Without flash attention logits do not depend on the number."""
        if n_threads != self.n_threads:
            lib.llama_set_n_threads(self._ctx, n_threads, n_threads)
            self.n_threads = n_threads

    def close(self) -> None:
        """Free the context. No other call may follow."""
        if self._ctx:
            self._batch.close()
            lib.llama_free(self._ctx)
            self._ctx = None


class FloatRows:
    """View of llama.cpp's floats at an address as an (n, width) array. It is kept, as the address
    rarely changes and making a view takes as long as reading it."""

    def __init__(self, n: int, width: int) -> None:
        self._shape = n, width
        self._rows: npt.NDArray[np.float32] = np.zeros((0, width), np.float32)
        self._address = 0

    def at(self, address: int) -> npt.NDArray[np.float32] | None:
        """(n, width) float32 view of the address; None for address 0."""
        if not address:
            return None
        if address != self._address:
            pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
            self._rows, self._address = np.ctypeslib.as_array(pointer, self._shape), address
        return self._rows


class LogitsView:
    """View of llama.cpp's buffer of at most `n` rows of logits. Rows exist for the logits wanted of
    the last pass alone, and until the next."""

    def __init__(self, n: int, n_vocab: int) -> None:
        self._buffer = FloatRows(n, n_vocab)
        self._of: npt.NDArray[np.float32] = np.zeros((0, n_vocab), np.float32)
        self._rows = Rows(self._of)

    def of(self, context: Any) -> Rows:
        """Logits of the context's last pass, once a GPU is done with it."""
        logits = self._buffer.at(get_logits(context))
        assert logits is not None, "a pass that asked for them has logits"
        if logits is not self._of:
            self._rows, self._of = Rows(logits), logits
        return self._rows
