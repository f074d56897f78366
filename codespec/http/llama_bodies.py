"""Request bodies of llama-server's clients: fields of infill, completions and tokens, by
llama.cpp's names.

Source: llama.cpp, tools/server/README.md.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from codespec import limits
from codespec.http.bodies import ALL_THERE_IS, Body
from codespec.http.field_error import FieldError
from codespec.limits import Count, Name, PathText, Text, TokenId, at_most, between

_Parts: TypeAlias = Annotated[list[TokenId | Text], at_most(limits.TOKENS)]


class LlamaBody(Body, kw_only=True):
    """Fields that infill and completions have in common. Of numbers beyond their range the nearest
    is meant."""

    temperature: limits.AnyNumber | None = None
    top_p: limits.AnyNumber = 1.0
    min_p: limits.AnyNumber = 0.0
    n_indent: Count = 0
    t_max_predict_ms: Annotated[float, between(-1, limits.MILLISECONDS)] = 0.0
    response_fields: Annotated[list[Name], at_most(limits.NAMES)] | None = None


class _Extra(msgspec.Struct):
    text: Text
    filename: PathText | None = ""


class InfillBody(LlamaBody, kw_only=True):
    """Body of POST /infill."""

    input_prefix: Text = ""
    input_suffix: Text = ""
    input_extra: Annotated[tuple[_Extra, ...], at_most(limits.FILES)] = ()
    prompt: Text = ""  # what stands before the cursor in its line


class CompletionBody(LlamaBody, kw_only=True):
    """Body of POST /completion. prompt: a text; texts and tokens of one prompt; or several prompts,
    which are texts, or lists of texts and tokens."""

    prompt: Text | Annotated[list[TokenId | Text | _Parts], at_most(limits.TOKENS)]
    n_cmpl: Count = 1

    @property
    def n_tokens(self) -> int:
        n = super().n_tokens
        return ALL_THERE_IS if n is None else n

    @property
    def prompts(self) -> list[str | list[int | str]]:
        """The prompts, one at least."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        parts = [part for part in self.prompt if not isinstance(part, list)]
        if len(parts) == len(self.prompt) and any(isinstance(part, int) for part in parts):
            return [parts]
        return [[part] if isinstance(part, int) else part for part in self.prompt]

    def check(self) -> None:
        super().check()
        if self.n_cmpl > 1:
            raise FieldError("n_cmpl", "n_cmpl is not supported; leave it out")
        n_prompts = len(self.prompts)
        if not n_prompts:
            raise FieldError("prompt", "the list of prompts is empty")
        if n_prompts > limits.PROMPTS:
            why = f"a request has at most {limits.PROMPTS} prompts, this one {n_prompts}"
            raise FieldError("prompt", why, "Send fewer.")
        if self.stream and n_prompts > 1:
            raise FieldError("prompt", "a stream answers one prompt; send several one by one")


class TokenizeBody(msgspec.Struct, kw_only=True):
    """Body of POST /tokenize."""

    content: Text
    add_special: bool = False
    parse_special: bool = True
    with_pieces: bool = False


class DetokenizeBody(msgspec.Struct, kw_only=True):
    """Body of POST /detokenize."""

    tokens: Annotated[list[TokenId], at_most(limits.TOKENS)] = []
