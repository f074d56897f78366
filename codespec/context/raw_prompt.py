"""Whole prompts, written by a client for the model that reads them: special tokens are read as
such, nothing is left out, and nothing is held back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import groupby
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
    document: see `build_context`. Raises: InputError as `whole_context`, and for tokens that the
    vocabulary does not have."""
    chunks: list[Tokens] = []
    for kind, group in groupby(request.parts or (request.prefix,), type):
        if kind is int:
            chunks.append(np.array(list(group), np.int32))
        else:
            texts = (specials_in(str(text), special_tokens) for text in group)
            chunks += [encoded(parts, special_tokens, tokenizer) for parts in texts]
    tokens = np.concatenate(chunks)
    if len(tokens) and tokens.max() >= info.n_vocab:
        raise InputError(
            f"the prompt has the token {tokens.max()}, and those of {info.name} go up to "
            f"{info.n_vocab - 1}",
            "Tokenize it for this model, or send it as text.",
        )
    context = whole_context(request, info, tokens, left, document)
    return dataclasses.replace(context, old=old_text(request, b"", info, tokenizer))


def whole_context(
    request: CompletionRequest, info: ModelInfo, tokens: Tokens, left: Tokens, document: str = ""
) -> Context:
    """The context of a prompt in tokens, the token that a text begins with put first where a text
    lacks that. Raises: InputError for a prompt that the model's context does not hold."""
    is_text = not (request.parts and isinstance(request.parts[0], int))
    if info.bos is not None and is_text and (not len(tokens) or tokens[0] != info.bos):
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
