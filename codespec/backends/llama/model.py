"""Models of llama.cpp, loaded: their tokenizer, contexts, and masks for grammars."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from codespec import pulse
from codespec.backends.base import DraftingLayer, KvType, Target
from codespec.backends.llama import kernels
from codespec.backends.llama.grammar import GrammarMask
from codespec.backends.llama.interrupts import interrupts_noted
from codespec.backends.llama.loader import (
    LoadedModel,
    forget_causes,
    gpu_backend,
    last_cause,
    lib,
    wants_memory,
    writes_nothing,
)
from codespec.backends.llama.memory import check_fits, ran_out
from codespec.backends.llama.mtp import OpenTarget, OwnLayer
from codespec.backends.llama.nextn import layer_in
from codespec.backends.llama.target import LlamaTarget
from codespec.backends.llama.tokenizer import LlamaTokenizer
from codespec.errors import ModelError
from codespec.models.registry import check_file
from codespec.models.split import size_of
from codespec.native import Encoder


class LlamaModel(LoadedModel):
    """`Model` over a GGUF file."""

    _tokenizer: LlamaTokenizer | None = None

    @property
    def tokenizer(self) -> LlamaTokenizer:
        if self._tokenizer is None:
            self._tokenizer = LlamaTokenizer(self)
        return self._tokenizer

    @property
    def encoder(self) -> Encoder:
        return self.tokenizer.encoder

    def context(
        self,
        *,
        n_ctx: int,
        n_threads: int = 0,
        kv_type: KvType = "f16",
        max_saved_bytes: int = 1 << 28,
    ) -> LlamaTarget:
        kind = OpenTarget if self.has_own_layer else LlamaTarget
        return kind(
            self,
            n_ctx=n_ctx,
            n_threads=n_threads,
            kv_type=kv_type,
            max_saved_bytes=max_saved_bytes,
        )

    def own_layer(self, target: Target, kv_type: KvType = "f16") -> DraftingLayer | None:
        return OwnLayer(self, target, kv_type=kv_type) if isinstance(target, OpenTarget) else None

    def grammar_mask(self, grammar: str) -> GrammarMask:
        return GrammarMask(self, grammar)


def load_model(
    path: Path,
    *,
    n_gpu_layers: int = -1,
    vocab_only: bool = False,
    weights: bool = True,
    own_layer: bool = False,
    on_progress: Callable[[float], None] = lambda _: None,
) -> LlamaModel:
    """Load a GGUF file; `vocab_only` reads metadata and tokenizer alone (tens of milliseconds).

    weights: False to see whether it could be loaded; the model can then say what it is, no more.
    own_layer: with the one that drafts for the others, where the file has one that can be used.
    on_progress: told the share that is loaded, 0 to 1.
    Raises: ModelError when the file is missing, no GGUF, damaged, not supported, too large for the
        memory that is free, or of a model that writes no text.
    """
    check_file(path)
    params = lib.llama_model_default_params()
    backend = gpu_backend()
    params.n_gpu_layers = (999 if n_gpu_layers < 0 else n_gpu_layers) if backend != "cpu" else 0
    params.vocab_only = vocab_only
    if not weights:
        params.no_alloc, params.load_mode = True, lib.LLAMA_LOAD_MODE_NONE
    share = kernels.NOTHING
    if backend == "cpu" and weights and not vocab_only:
        check_fits(path, size_of(path))
        share = kernels.share_in(path)
        params.use_extra_bufts = not (share.needs_order or kernels.has_amx())
        overrides = kernels.overrides(size_of(path)) if share.is_all else None
        if overrides is not None:
            params.tensor_buft_overrides = ctypes.cast(overrides, ctypes.c_void_p)

    with interrupts_noted() as is_interrupted:

        def told(share: float, _user: object) -> bool:
            pulse.step()
            on_progress(share)
            return not is_interrupted()  # go on

        callback = lib.llama_progress_callback(told)
        params.progress_callback = callback
        forget_causes()
        params.load_mtp = own_layer and layer_in(path)
        handle = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not handle:
            if wants_memory():
                raise ran_out(path, "to load it")
            raise ModelError(
                f"{path}: llama.cpp cannot load this model{last_cause()}",
                "The file may be incomplete or of a newer format: download it again, or try "
                "another.",
            )
    model = LlamaModel(handle, path, backend, share)
    model.has_own_layer = bool(params.load_mtp)
    if not _writes_text(model):
        model.close()
        raise writes_nothing(path)
    return model


def _writes_text(model: LoadedModel) -> bool:
    """True as far as the file says: a vocabulary, and no attention to what comes after a token."""
    kind = model.metadata("general.architecture")
    return (
        lib.llama_vocab_type(model.vocab) != lib.LLAMA_VOCAB_TYPE_NONE
        and not lib.llama_model_has_encoder(model.handle)
        and model.metadata(f"{kind}.attention.causal") != "false"
    )
