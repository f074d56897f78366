"""OpenAI's completions: the dialect of POST /v1/completions."""

from __future__ import annotations

from dataclasses import replace

from codespec import limits
from codespec.config import CompletionSettings
from codespec.context.templates import PromptParts, has_markers, parted
from codespec.edits.formats.registry import form_of
from codespec.http.bodies import CompletionsBody, read, snippets_of
from codespec.http.dialects.base import Json
from codespec.http.dialects.openai_answers import OpenAIAnswers, finish_of
from codespec.http.field_error import FieldError
from codespec.requests import Completion, CompletionRequest

_NO_TEMPLATE = (
    "a prompt uses FIM markers in no form that is known, and was read as plain text; send prompt "
    "and suffix, or raw: true if the model that completes knows the form"
)


class OpenAICompletions(OpenAIAnswers[CompletionsBody]):
    """POST /v1/completions"""

    kind = kind_of_part = "text_completion"

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, CompletionsBody), model, "cmpl")

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        return [self._request(prompt, defaults) for prompt in self._body.prompts]

    def _request(self, prompt: str, defaults: CompletionSettings) -> CompletionRequest:
        made, predicted = self._read(prompt, defaults), self._body.predicted
        return replace(made, rewrites=predicted) if predicted else made

    def _read(self, prompt: str, defaults: CompletionSettings) -> CompletionRequest:
        body = self._body
        form = None if body.suffix or body.raw else form_of(prompt)
        if body.raw or form is not None:
            if not body.verbatim:  # else all of the prompt would not be read
                raise FieldError("verbatim", "a raw prompt has verbatim answers; leave it out")
            made = replace(body.request(prompt, "", defaults), raw=True)
            if form is None:
                return made
            # Of a window that is rewritten most is copied.
            unchanged = form.unchanged(made.prefix)[: limits.OLD_CHARS]
            return replace(made, form=form.name, rewrites=unchanged)
        parts = PromptParts(prompt, body.suffix) if body.suffix else parted(prompt)
        if parts == (prompt, "", ()) and has_markers(prompt):
            self._warnings = [_NO_TEMPLATE]
        made = body.request(parts.prefix, parts.suffix, defaults)
        return replace(made, extra=snippets_of(parts.files))

    def choice(self, text: str, completion: Completion | None, *, is_part: bool) -> Json:
        return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish_of(completion)}
