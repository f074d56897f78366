"""Whole prompts, written by a client for the model that reads them: special tokens are read as
such, nothing is left out, and nothing is held back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from codespec.context.old_text import old_text
from codespec.context.special_tokens import encoded, specials_in
from codespec.errors import InputError
from codespec.requests import CompletionRequest
from codespec.types import Context, ModelInfo, Tokenizer, Tokens

NO_SPECIAL_TOKENS: Mapping[str, int] = MappingProxyType({})


def raw_context(
    request: CompletionRequest,
    info: ModelInfo,
    tokenizer: Tokenizer,
    special_tokens: Mapping[str, int],
    left: Tokens,
    document: str = "",
) -> Context:
    """The context of a raw request. left: tokens of the prompt as plain text, for lookups.
    document: see `build_context`. Raises: InputError as `whole_context`."""
    parts = specials_in(request.prefix, special_tokens)
    tokens = encoded(parts, special_tokens, tokenizer)
    context = whole_context(request, info, tokens, left, document)
    return dataclasses.replace(context, old=old_text(request, b"", info, tokenizer))


def whole_context(
    request: CompletionRequest, info: ModelInfo, tokens: Tokens, left: Tokens, document: str = ""
) -> Context:
    """The context of a prompt in tokens, the token that a text begins with put first where it lacks
    that. Raises: InputError for a prompt that the model's context does not hold."""
    if info.bos is not None and (not len(tokens) or tokens[0] != info.bos):
        tokens = np.concatenate([np.array([info.bos], np.int32), tokens])
    if len(tokens) >= info.n_ctx:
        raise InputError(
            f"the prompt has {len(tokens):,} tokens, and the context of {info.name} holds "
            f"{info.n_ctx:,}",
            "Shorten it, or set model.n_ctx to more.",
        )
    return Context(
        prompt=tokens,
        left=left,
        path=request.path,
        workspace=request.workspace,
        document=document,
        sampling=request.sampling,
        n_before=len(left),
    )
