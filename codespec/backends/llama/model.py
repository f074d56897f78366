"""Loaded llama.cpp models: tokenizer, contexts, MTP head, and masks for grammars."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from codespec.backends.base import KvType, MtpHead, Target
from codespec.backends.llama import kernels
from codespec.backends.llama.grammar import GrammarMask
from codespec.backends.llama.interrupts import interrupts_noted
from codespec.backends.llama.json_schema import gbnf_of
from codespec.backends.llama.loader import (
    LoadedModel,
    forget_causes,
    gpu_backend,
    last_cause,
    lib,
    not_generative,
    wants_memory,
)
from codespec.backends.llama.memory import check_fits, out_of_memory
from codespec.backends.llama.mtp import HiddenStateTarget, LlamaMtpHead
from codespec.backends.llama.nextn import has_mtp_layer
from codespec.backends.llama.target import LlamaTarget
from codespec.backends.llama.tokenizer import LlamaTokenizer
from codespec.errors import InputError, ModelError
from codespec.models.resolve import check_file
from codespec.models.split import size_of
from codespec.native import Encoder
from codespec.system import pulse


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
        kind = HiddenStateTarget if self.has_mtp_head else LlamaTarget
        return kind(
            self,
            n_ctx=n_ctx,
            n_threads=n_threads,
            kv_type=kv_type,
            max_saved_bytes=max_saved_bytes,
        )

    def mtp_head(self, target: Target, kv_type: KvType = "f16") -> MtpHead | None:
        return (
            LlamaMtpHead(self, target, kv_type=kv_type)
            if isinstance(target, HiddenStateTarget)
            else None
        )

    def grammar_mask(self, grammar: str) -> GrammarMask:
        return GrammarMask(self, grammar)

    def schema_mask(self, schema: str) -> GrammarMask:
        try:
            return GrammarMask(self, gbnf_of(schema))
        except InputError as e:  # the client sent no grammar
            why = f"the JSON schema asks for too much: {e.message}"
            raise InputError(why, "Ask for a simpler one.") from None


def load_model(
    path: Path,
    *,
    n_gpu_layers: int = -1,
    vocab_only: bool = False,
    weights: bool = True,
    mtp_head: bool = False,
    on_progress: Callable[[float], None] = lambda _: None,
) -> LlamaModel:
    """Load a GGUF file; `vocab_only` reads metadata and tokenizer alone (tens of milliseconds).

    weights: False to check that the file can be loaded; the model then has metadata alone.
    mtp_head: True to load the MTP head, too, where the file has one that can be used.
    on_progress: called with the loaded share, 0 to 1.

    Raises: ModelError when the file is missing, no GGUF, damaged, not supported, too large for free
        memory, or of a model that cannot generate text.
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
        params.load_mtp = mtp_head and has_mtp_layer(path)
        handle = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not handle:
            if wants_memory():
                raise out_of_memory(path, "to load it")
            raise ModelError(
                f"{path}: llama.cpp cannot load this model{last_cause()}",
                "The file may be incomplete or of a newer format: download it again, or try "
                "another.",
            )
    model = LlamaModel(handle, path, backend, share)
    model.has_mtp_head = bool(params.load_mtp)
    if not _writes_text(model):
        model.close()
        raise not_generative(path)
    return model


def _writes_text(model: LoadedModel) -> bool:
    """True if the metadata are those of a causal decoder with a vocabulary."""
    kind = model.metadata("general.architecture")
    return (
        lib.llama_vocab_type(model.vocab) != lib.LLAMA_VOCAB_TYPE_NONE
        and not lib.llama_model_has_encoder(model.handle)
        and model.metadata(f"{kind}.attention.causal") != "false"
    )
