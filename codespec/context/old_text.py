"""The text that an output is expected to repeat much of: drafts come from it, the model does not
read it."""

from __future__ import annotations

from codespec.requests import CompletionRequest
from codespec.syntax.text import normalise
from codespec.types import NO_TOKENS, ModelInfo, Tokenizer, Tokens


def old_text(
    request: CompletionRequest, healed: bytes, info: ModelInfo, tokenizer: Tokenizer
) -> Tokens:
    """Tokens of the text that the output of a request rewrites, as many as the model's context may
    hold. healed: bytes that the output repeats first."""
    if not request.rewrites:
        return NO_TOKENS
    text = healed + normalise(request.rewrites).encode("utf-8", "replace")
    return tokenizer.encode(text)[: info.n_ctx]
