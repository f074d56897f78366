"""What contexts of one model have in common."""

from __future__ import annotations

from typing import Any, Literal

from codespec.backends.llama import kernels
from codespec.backends.llama.loader import LoadedModel, lib

KvType = Literal["f16", "q8_0"]

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
