"""Mistral's API: fill-in-the-middle, the dialect of POST /v1/fim/completions.

Source: the Mistral API reference, https://docs.mistral.ai/api/endpoint/fim.
"""

from __future__ import annotations

from codespec import limits
from codespec.config import CompletionSettings
from codespec.http.bodies import OpenAIBody, read
from codespec.http.dialects.base import Api, Event, Json, Writes
from codespec.http.dialects.openai_answers import (
    OpenAIAnswers,
    chat_choice,
    error_of,
)
from codespec.http.dialects.written_prompts import request_for
from codespec.limits import Text
from codespec.requests import Completion, CompletionRequest


class FimBody(OpenAIBody, kw_only=True):
    """Body of POST /v1/fim/completions."""

    prompt: Text
    suffix: Text = ""
    random_seed: limits.AnySeed = -1

    def __post_init__(self) -> None:
        if self.random_seed != -1:
            self.seed = self.random_seed


class MistralFim(OpenAIAnswers[FimBody]):
    """POST /v1/fim/completions"""

    kind = "chat.completion"
    kind_of_part = "chat.completion.chunk"

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, FimBody), model, "fim")

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        made = request_for(self._body, self._body.prompt, self._body.suffix, defaults)
        self._warnings = [*made.warnings]
        return [made.request]

    def choice(self, text: str, completion: Completion | None, *, is_part: bool) -> Json:
        return chat_choice({"role": "assistant", "content": text}, completion, is_part=is_part)

    def end(self, text: str, completion: Completion) -> list[Event]:
        last = self._event(text, completion) | {"usage": self._usage(completion.trace)}
        return [last, "[DONE]"]


def _error(status: int, message: str, field: str) -> Json:
    error = error_of(status, message, field)["error"]
    return {"object": "error", **error, "detail": message}


API = Api(
    routes={"/v1/fim/completions": Writes(MistralFim)},
    error=_error,
    prefixes=("/v1/fim/",),
)
