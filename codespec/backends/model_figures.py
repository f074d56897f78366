"""Figures of a model that a backend has opened."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from codespec.backends.base import Model
from codespec.context.fim import in_order
from codespec.models.figures import ModelFigures
from codespec.system.files import state_of
from codespec.types import FimTokens, ModelInfo


def figures_of_info(info: ModelInfo, n_ctx: int) -> ModelFigures:
    """The figures that metadata tell. n_ctx: tokens of context in use."""
    state = state_of(info.path) if info.path else None
    return ModelFigures(
        architecture=info.architecture,
        backend=info.backend,
        n_params=info.n_params,
        n_ctx=n_ctx,
        n_ctx_trained=info.n_ctx,
        file_bytes=info.file_bytes,
        modified_s=state[0] / 1e9 if state else 0.0,
        fills_in=info.fim is not None,
    )


def figures_of(model: Model, n_ctx: int) -> ModelFigures:
    """All figures of a model. n_ctx: tokens of context in use."""
    words = model.description.split()
    return msgspec.structs.replace(
        figures_of_info(model.info, n_ctx),
        quantisation=words[-1] if words else "",
        fim_prompt=fim_prompt(model.info.fim, model.token_text),
        chats=model.chat_prompt([("user", "text")]) is not None,
    )


def fim_prompt(fim: FimTokens | None, text_of: Callable[[int], str]) -> str:
    """See `ModelFigures.fim_prompt`. text_of: spells a marker."""
    if fim is None:
        return ""
    ids = fim.prefix, fim.suffix, fim.middle
    prefix, suffix, middle = (text_of(t) if t >= 0 else "" for t in ids)
    markers = prefix, suffix, middle
    return "".join(in_order(fim.order, markers, "{prefix}", "", "{suffix}"))
