"""The prompt of a chat: the model's own template around the texts of its messages."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from codespec.context.old_text import old_text
from codespec.context.raw_prompt import whole_context
from codespec.context.special_tokens import Part, encoded, specials_in
from codespec.errors import InputError
from codespec.requests import ChatMessage, CompletionRequest
from codespec.types import Context, ModelInfo, Tokenizer, Tokens

ChatTemplate: TypeAlias = Callable[[Sequence[tuple[str, str]]], "str | None"]
"""See `Model.chat_prompt`."""

# Stands for the text of message i in a template's output; private characters of Unicode.
_STANDING_IN = re.compile("\ue000([0-9]+)\ue001")


def no_template(messages: Sequence[tuple[str, str]]) -> str | None:
    """`ChatTemplate` of a model without one."""
    return None


def chat_context(
    request: CompletionRequest,
    info: ModelInfo,
    tokenizer: Tokenizer,
    special_tokens: Mapping[str, int],
    template: ChatTemplate,
    left: Tokens,
    document: str = "",
) -> Context | None:
    """The context of a request with messages; None where the model has no chat template, and the
    request needs none. left: tokens of their texts, for lookups. document: see `build_context`.
    A chat that is shortened leaves a quarter of the context to the answer, or as much as it may
    take. Raises: InputError where it needs one, and as `whole_context`."""
    parts = chat_parts(request.messages, template, special_tokens)
    if parts is None and not request.needs_template:
        return None
    if parts is None:
        raise InputError(
            f"{info.name} has no chat template that is known",
            "Ask for a completion (/v1/completions, or /api/generate without system), or choose a "
            "model that was trained on chats.",
        )
    tokens, n_dropped = encoded(parts, special_tokens, tokenizer), 0
    if request.shortens_chat and len(tokens) + 1 >= info.n_ctx:
        room = info.n_ctx - 1 - min(request.max_tokens, info.n_ctx // 4)
        kept, n_dropped = _latest(request.messages, len(tokens) - room, tokenizer)
        parts = chat_parts(kept, template, special_tokens) or ()
        tokens = encoded(parts, special_tokens, tokenizer)
    context = whole_context(request, info, tokens, left, document)
    old = old_text(request, b"", info, tokenizer)
    return dataclasses.replace(context, old=old, n_before=max(0, len(left) - n_dropped))


def _latest(
    messages: Sequence[ChatMessage], n_tokens: int, tokenizer: Tokenizer
) -> tuple[Sequence[ChatMessage], int]:
    """(messages without the oldest ones, their tokens): so many that they take this number of
    tokens. Those of the system stay, and the last one."""
    kept, n_dropped = list(messages), 0
    for said in messages[:-1]:
        if n_dropped >= n_tokens:
            break
        if said.role != "system":
            kept.remove(said)
            n_dropped += len(tokenizer.encode(said.text))
    return kept, n_dropped


def chat_parts(
    messages: Sequence[ChatMessage], template: ChatTemplate, special_tokens: Mapping[str, int]
) -> tuple[Part, ...] | None:
    """The parts of a chat's prompt, None without a template. Special tokens are those of the
    template alone: a message that spells one is text."""
    made = template([(said.role, f"\ue000{i}\ue001") for i, said in enumerate(messages)])
    if made is None:
        return None
    parts: list[Part] = []
    for k, piece in enumerate(_STANDING_IN.split(made)):
        if k % 2:
            parts.append(messages[int(piece)].text)
        else:
            parts += specials_in(piece, special_tokens)
    return tuple(parts)
