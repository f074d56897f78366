"""llama-server's completions: the dialect of POST /completion."""

from __future__ import annotations

from dataclasses import replace

from codespec.config import CompletionSettings
from codespec.http.bodies import read
from codespec.http.dialects.llama_answers import LlamaAnswers
from codespec.http.dialects.written_prompts import request_for
from codespec.http.llama_bodies import CompletionBody
from codespec.requests import CompletionRequest


class LlamaCompletion(LlamaAnswers[CompletionBody]):
    """POST /completion. A prompt in no known form is read as it is, special tokens included."""

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, CompletionBody), model)

    def asked(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        return [self._asked(prompt, defaults) for prompt in self._body.prompts]

    def _asked(
        self, prompt: str | list[int | str], defaults: CompletionSettings
    ) -> CompletionRequest:
        body = self._body
        if isinstance(prompt, list):
            made = request_for(body, "", "", defaults, raw=True)
            return replace(made.request, parts=tuple(prompt))
        made = request_for(body, prompt, "", defaults)
        if made.is_plain and body.verbatim:
            made = request_for(body, prompt, "", defaults, raw=True)
        return made.request
