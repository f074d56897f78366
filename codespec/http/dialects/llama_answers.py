"""The parts of an answer that llama-server's infill and completions have in common.

They have what the code of its clients reads, and nothing that is not true. Source: llama.cpp,
tools/server/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from codespec.config import CompletionSettings
from codespec.http.bodies import ALL_THERE_IS
from codespec.http.dialects.base import Event, Json, OfBody, about, was_cut
from codespec.http.llama_bodies import LlamaBody
from codespec.http.samplers import acting
from codespec.requests import Completion, CompletionRequest

_L = TypeVar("_L", bound=LlamaBody)


class LlamaAnswers(OfBody[_L]):
    """The parts of a `Dialect` that llama-server's have in common."""

    def __init__(self, body: _L, model: str) -> None:
        super().__init__(body, model)
        self._requests = list[CompletionRequest]()

    def asked(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        """The requests by the fields that are not common."""
        raise NotImplementedError

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        body = self._body
        self._requests = [
            replace(
                made,
                min_indent=body.n_indent,
                max_line_ms=max(0.0, body.t_max_predict_ms),
                # An editor asks with each key, and waits for the prompt to be read.
                whole=body.verbatim and body.t_max_predict_ms <= 0,
            )
            for made in self.asked(defaults)
        ]
        return self._requests

    def answer(self, completions: Sequence[Completion]) -> Json | list[Json]:
        fields = self._body.response_fields
        ends = [self._end(n, said.text, said) for n, said in enumerate(completions)]
        found = [_picked(end, fields) if fields else end for end in ends]
        return found if len(found) > 1 else found[0]

    def part(self, text: str) -> Event:
        return {"index": 0, "content": text, "stop": False}

    def end(self, text: str, completion: Completion) -> list[Event]:
        return [self._end(0, text, completion)]

    def _end(self, index: int, text: str, completion: Completion) -> Json:
        trace, request = completion.trace, self._requests[index]
        is_word = trace.n_stop >= 0 and not was_cut(completion)
        holds: Json = {"n_ctx": trace.n_ctx} if trace.n_ctx else {}
        return {
            "index": index,
            "content": text,
            "stop": True,
            "model": trace.model or self._model,
            "tokens_predicted": trace.n_tokens,
            "tokens_evaluated": trace.n_prompt_tokens,
            "tokens_cached": trace.n_prompt_cached,
            "has_new_line": "\n" in completion.text,
            "generation_settings": {**holds, **settings_of(request, streams=self._body.stream)},
            "prompt": _text_of(request),
            "stop_type": "word" if is_word else "limit" if was_cut(completion) else "eos",
            "stopping_word": request.stop[trace.n_stop] if is_word else "",
            **about(completion),
        }


def settings_of(request: CompletionRequest, *, streams: bool) -> Json:
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
        "samplers": acting(sampling),
        "grammar": sampling.grammar,
        "stop": list(request.stop),
        "stream": streams,
    }


def _text_of(request: CompletionRequest) -> str:
    """The text before the place of a request, as far as it was sent as text."""
    return request.prefix or "".join(part for part in request.parts if isinstance(part, str))


def _picked(found: Json, fields: Sequence[str]) -> Json:
    """The fields with these names; `a/b` is field b of object a, under that name."""
    picked: Json = {}
    for field in fields:
        value: Any = found
        for name in field.split("/"):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            picked[field] = value
    return picked
