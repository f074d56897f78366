"""Figures of a model that is loaded, as clients of the daemon are told them."""

from __future__ import annotations

import msgspec


class ModelFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a model; 0 and "" for those that are not known.

    n_ctx:         tokens that its context holds here.
    n_ctx_trained: tokens that it was trained to read.
    modified_s:    time at which its file was changed last, seconds since 1970.
    fills_in:      True if it was trained to fill in the middle.
    fim_prompt:    its FIM prompt, in which {prefix} and {suffix} stand for the texts.
    chats:         True if it has a chat template that is known.
    """

    architecture: str = ""
    quantisation: str = ""
    backend: str = ""
    n_params: int = 0
    n_ctx: int = 0
    n_ctx_trained: int = 0
    file_bytes: int = 0
    modified_s: float = 0.0
    fills_in: bool = False
    fim_prompt: str = ""
    chats: bool = False
