"""A check that llama.cpp computes what torch computes: logits of both for the same tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from codespec.backends.llama import load_model
from codespec.backends.llama.loader import last_cause, lib
from codespec.errors import ModelError
from codespec.training.network import Llama

GGML_TYPE_F32 = 0
FLASH_ATTENTION_OFF = 0


@dataclass(frozen=True, slots=True)
class Agreement:
    """max_difference: largest absolute difference of any logit; argmax: share of positions with the
    same top token.
    """

    n_tokens: int
    max_difference: float
    argmax: float
    logit_std: float


def llama_logits(path: Path, tokens: list[int]) -> npt.NDArray[np.float32]:
    """Logits of every position by llama.cpp: (n, n_vocab). float32 KV cache and no flash attention:
    its most exact way.

    Raises: ModelError if the file cannot be loaded or the tokens cannot be decoded.
    """
    model = load_model(path)
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = max(256, len(tokens))
    params.type_k = params.type_v = GGML_TYPE_F32
    params.flash_attn_type = FLASH_ATTENTION_OFF
    context = lib.llama_init_from_model(model.handle, params)
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    try:
        if not context:
            raise ModelError(f"{path}: no context of {len(tokens)} tokens{last_cause()}")
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
            batch.seq_id[i][0] = 0
        batch.n_tokens = len(tokens)
        if code := int(lib.llama_decode(context, batch)):
            raise ModelError(f"{path}: llama.cpp could not decode (code {code}){last_cause()}")
        rows = np.ctypeslib.as_array(lib.llama_get_logits(context), (len(tokens), model.n_vocab))
        return rows.copy()
    finally:
        lib.llama_batch_free(batch)
        if context:
            lib.llama_free(context)
        model.close()


@torch.no_grad()
def compare(model: Llama, path: Path, tokens: list[int]) -> Agreement:
    """The torch model against a GGUF file over the same tokens."""
    ours = model(torch.tensor([tokens]))[0].numpy()
    theirs = llama_logits(path, tokens)
    same = float(np.mean(ours.argmax(1) == theirs.argmax(1)))
    return Agreement(len(tokens), float(np.abs(ours - theirs).max()), same, float(ours.std()))
