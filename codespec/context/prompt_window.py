"""The prompt window: which of a document's tokens the model reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from codespec.context.chat import ChatTemplate, chat_context, no_template
from codespec.context.fim import assemble, n_markers
from codespec.context.healing import hold_back
from codespec.context.old_text import old_text
from codespec.context.raw_prompt import NO_SPECIAL_TOKENS, raw_context
from codespec.context.snippets import NOTHING_SHOWN, Rendered
from codespec.requests import CompletionRequest
from codespec.types import Context, ModelInfo, Snippet, Tokenizer, Tokens

# The window's start moves in steps of this many tokens: if it moved with every token typed, no
# two prompts would share a beginning and the KV cache would be worth nothing.
STEP = 256


MAX_LINE_TOKENS = 128
"""Longest line, in tokens, that counts as the cursor's: nobody types a longer one."""


@dataclass(frozen=True, slots=True)
class Window:
    """Most document tokens in the prompt before and after the cursor."""

    n_prefix: int
    n_suffix: int

    def fitted(self, n_ctx: int, n_output: int) -> Window:
        """This window reduced to a context of `n_ctx` tokens with room for the output, which takes
        at most half of them: a request for as many tokens as there are still wants them to follow a
        prompt. A quarter is for the suffix, or the part that the prefix does not need."""
        room = max(n_ctx - min(n_output, n_ctx // 2), 16)
        n_suffix = min(self.n_suffix, max(room // 4, room - self.n_prefix))
        return Window(min(self.n_prefix, room - n_suffix), n_suffix)


def build_context(
    request: CompletionRequest,
    left: Tokens,
    right: Tokens,
    info: ModelInfo,
    tokenizer: Tokenizer,
    window: Window,
    snippets: tuple[Snippet, ...] = (),
    shown: Rendered = NOTHING_SHOWN,
    document: str = "",
    *,
    heals: bool = True,
    special_tokens: Mapping[str, int] = NO_SPECIAL_TOKENS,
    chat_prompt: ChatTemplate = no_template,
) -> Context:
    """The context of a request. Raises: InputError for a raw prompt that does not fit.

    left, right: tokens of the document before and after the cursor.
    window:   most tokens of the document; fewer where the model's context is short.
    snippets: text of other files; left out where it would take more than half of the prompt.
    shown:    tokens of these snippets.
    document: key of the document in `OpenDocuments`.
    heals:    False to hold nothing back, see `healing`.
    special_tokens: see `Model.special_tokens`; for raw prompts, read as they are, and chats.
    chat_prompt: see `Model.chat_prompt`.
    """
    if request.messages:
        chat = chat_context(request, info, tokenizer, special_tokens, chat_prompt, left, document)
        if chat is not None:
            return chat
    if request.raw:
        return raw_context(request, info, tokenizer, special_tokens, left, document)
    n_output = min(request.max_tokens, info.n_ctx // 2)
    if shown.n_tokens > (info.n_ctx - n_output) // 2:
        snippets, shown = (), NOTHING_SHOWN
    # A grammar describes the text after the cursor and nothing before it. A prompt holds a token at
    # least, also for models whose prompts are the text alone.
    heals &= not request.sampling.has_form and (len(left) > 1 or n_markers(info) > 0)
    kept, healed = hold_back(left, tokenizer) if heals else (left, b"")
    # The output repeats the held-back tokens.
    n_repeated = len(left) - len(kept)
    window = window.fitted(info.n_ctx - n_markers(info) - shown.n_tokens - n_repeated, n_output)
    start = window_start(len(kept), window.n_prefix)
    inside, after = kept[start:], right[: window.n_suffix]
    n_before = len(inside)
    if len(shown.inside):
        inside = np.concatenate([shown.inside, inside])
    n_last_line = n_in_line(inside, tokenizer)
    prompt, fim = assemble(info, inside, after, shown.before, n_last_line)
    return Context(
        prompt=prompt,
        left=kept,
        right=right,
        healed=healed,
        fim=fim,
        path=request.path,
        workspace=request.workspace,
        document=document,
        sampling=request.sampling,
        snippets=snippets,
        n_before=n_before,
        n_after=len(after) if fim else 0,
        old=old_text(request, healed, info, tokenizer),
    )


def n_in_line(left: Tokens, tokenizer: Tokenizer) -> int:
    """Number of the last tokens that stand on the last line; 0 where that is longer than
    MAX_LINE_TOKENS."""
    for n, token in enumerate(left[: -MAX_LINE_TOKENS - 1 : -1].tolist()):
        if b"\n" in tokenizer.piece(token):
            return n
    return 0


def window_start(n_tokens: int, n_window: int) -> int:
    """First token of the window: a multiple of STEP, at most `n_window` before the end."""
    excess = max(0, n_tokens - n_window)
    step = min(STEP, max(1, n_window // 2))
    return -(-excess // step) * step
