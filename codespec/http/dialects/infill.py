"""llama.cpp's infill, for its plug-ins: the HTTP dialect of POST /infill.

The answer has what their code reads, and nothing that is not true. Source: llama.cpp,
tools/server/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codespec.config import CompletionSettings
from codespec.http.bodies import ALL_THERE_IS, InfillBody, read, snippets_of
from codespec.http.dialects.base import Event, Json, OfBody, about, was_cut
from codespec.reasons import Trimming
from codespec.requests import Completion, CompletionRequest


class Infill(OfBody[InfillBody]):
    """POST /infill. Always one text, whatever `n_cmpl` says; no `samplers`: their order is ours."""

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, InfillBody), model)
        self._settings: Json = {}

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        body = self._body
        prefix = body.input_prefix + body.prompt
        request = replace(
            body.request(prefix, body.input_suffix, defaults),
            min_indent=body.n_indent,
            max_line_ms=body.t_max_predict_ms,
            # An editor, which asks with each key and waits for the prompt to be read.
            whole=body.verbatim and body.t_max_predict_ms <= 0,
            extra=snippets_of((extra.filename or "", extra.text) for extra in body.input_extra),
        )
        self._settings = _settings(request, streams=body.stream)
        return [request]

    def answer(self, completions: Sequence[Completion]) -> Json:
        [completion] = completions
        found = self._end(completion.text, completion)
        fields = self._body.response_fields
        return _picked(found, fields) if fields else found

    def part(self, text: str) -> Event:
        return {"index": 0, "content": text, "stop": False}

    def end(self, text: str, completion: Completion) -> list[Event]:
        return [self._end(text, completion)]

    def _end(self, text: str, completion: Completion) -> Json:
        trace = completion.trace
        stop_type = "word" if Trimming.STOP_TEXT in trace.trimmed else "eos"
        holds: Json = {"n_ctx": trace.n_ctx} if trace.n_ctx else {}
        return {
            "index": 0,
            "content": text,
            "stop": True,
            "model": trace.model or self._model,
            "tokens_predicted": trace.n_tokens,
            "tokens_evaluated": trace.n_prompt_tokens,
            "tokens_cached": trace.n_prompt_cached,
            "has_new_line": "\n" in completion.text,
            "generation_settings": {**holds, **self._settings},
            "stop_type": "limit" if was_cut(completion) else stop_type,
            **about(completion),
        }


def _settings(request: CompletionRequest, *, streams: bool) -> Json:
    """The settings by which a request is answered, by llama.cpp's names."""
    sampling = request.sampling
    n_predict = -1 if request.max_tokens == ALL_THERE_IS else request.max_tokens
    return {
        "n_predict": n_predict,
        "max_tokens": n_predict,
        "seed": -1 if sampling.any_seed else sampling.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repetition_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "grammar": sampling.grammar,
        "stop": list(request.stop),
        "stream": streams,
    }


def _picked(found: Json, fields: list[str]) -> Json:
    """The fields with these names; `a/b` is field b of object a, under that name."""
    picked: Json = {}
    for field in fields:
        value: Any = found
        for name in field.split("/"):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            picked[field] = value
    return picked
