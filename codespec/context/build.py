"""The prompt window: which of a document's tokens the model reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codespec.context.fim import assemble, n_markers
from codespec.context.healing import hold_back
from codespec.context.snippets import NOTHING_SHOWN, Rendered
from codespec.requests import CompletionRequest
from codespec.types import Context, ModelInfo, Snippet, Tokenizer, Tokens

# The window's start moves in steps of this many tokens: if it moved with every token typed, no
# two prompts would share a beginning and the KV cache would be worth nothing.
STEP = 256


MAX_LINE_TOKENS = 128
"""Longer lines are no lines that anybody types."""


@dataclass(frozen=True, slots=True)
class Window:
    """Most document tokens in the prompt before and after the cursor."""

    n_prefix: int
    n_suffix: int

    def fitted(self, n_ctx: int, n_output: int) -> Window:
        """This window cut down to a context of `n_ctx` tokens with room for the output, at most
        half of them: who asks for as much as there is still wants it to follow a prompt. A quarter
        is for the suffix, or what the prefix does not need."""
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
) -> Context:
    """`left` and `right` are the tokens before and after the cursor of what is known as `document`;
    `shown` what `snippets` become, which leaves the window less room where the context is short.
    heals: False to hold nothing back, see `healing`."""
    n_output = min(request.max_tokens, info.n_ctx // 2)
    if shown.n_tokens > (info.n_ctx - n_output) // 2:
        snippets, shown = (), NOTHING_SHOWN
    # A grammar describes what is written after the cursor and nothing before it. Something is left
    # to read, also for models whose prompts are the text alone.
    heals &= not request.sampling.grammar and (len(left) > 1 or n_markers(info) > 0)
    kept, healed = hold_back(left, tokenizer) if heals else (left, b"")
    # What is held back is said once more.
    n_repeated = len(left) - len(kept)
    window = window.fitted(info.n_ctx - n_markers(info) - shown.n_tokens - n_repeated, n_output)
    start = window_start(len(kept), window.n_prefix)
    inside, after = kept[start:], right[: window.n_suffix]
    n_before = len(inside)
    if len(shown.inside):
        inside = np.concatenate([shown.inside, inside])
    prompt, fim = assemble(info, inside, after, shown.before, n_in_line(inside, tokenizer))
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
    )


def n_in_line(left: Tokens, tokenizer: Tokenizer) -> int:
    """How many of the last tokens stand on the last line; 0 where that is very long."""
    for n, token in enumerate(left[: -MAX_LINE_TOKENS - 1 : -1].tolist()):
        if b"\n" in tokenizer.piece(token):
            return n
    return 0


def window_start(n_tokens: int, n_window: int) -> int:
    """First token of the window: a multiple of STEP, at most `n_window` before the end."""
    excess = max(0, n_tokens - n_window)
    step = min(STEP, max(1, n_window // 2))
    return -(-excess // step) * step
