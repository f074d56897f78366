"""OpenAI's completions: the dialect of POST /v1/completions."""

from __future__ import annotations

from dataclasses import replace

from codespec.config import CompletionSettings
from codespec.http.bodies import CompletionsBody, read
from codespec.http.dialects.base import Json
from codespec.http.dialects.openai_answers import OpenAIAnswers, finish_of
from codespec.http.dialects.written_prompts import request_for
from codespec.requests import Completion, CompletionRequest


class OpenAICompletions(OpenAIAnswers[CompletionsBody]):
    """POST /v1/completions"""

    kind = kind_of_part = "text_completion"

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, CompletionsBody), model, "cmpl")

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        return [self._request(prompt, defaults) for prompt in self._body.prompts]

    def _request(self, prompt: str, defaults: CompletionSettings) -> CompletionRequest:
        body, predicted = self._body, self._body.predicted
        made = request_for(body, prompt, body.suffix, defaults, raw=body.raw)
        if made.warnings:
            self._warnings = [*made.warnings]
        return replace(made.request, rewrites=predicted) if predicted else made.request

    def choice(self, text: str, completion: Completion | None, *, is_part: bool) -> Json:
        return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish_of(completion)}
