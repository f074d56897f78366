"""Ollama's completions and chats: the dialects of POST /api/generate and /api/chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TypeVar

from codespec.config import CompletionSettings
from codespec.http.bodies import read
from codespec.http.dialects.base import Event, Json, OfBody, about, was_cut
from codespec.http.dialects.ollama_bodies import GenerateBody, OllamaBody, OllamaChatBody
from codespec.http.dialects.written_prompts import request_for
from codespec.requests import Completion, CompletionRequest

_B = TypeVar("_B", bound=OllamaBody)

_SYSTEM_LEFT_OUT = "beside a suffix or a FIM prompt system is not read, as in Ollama"


def time_of(seconds: float) -> str:
    """A moment as Ollama writes it. seconds: since 1970."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")


class _OllamaAnswers(OfBody[_B]):
    """The parts of a `Dialect` that Ollama's have in common. A request without a prompt asks for
    the model to be loaded, or unloaded: it is answered when the model is ready, which it stays."""

    def __init__(self, body: _B, model: str, *, is_empty: bool) -> None:
        super().__init__(body, model)
        self._is_empty = is_empty

    def said(self, text: str) -> Json:
        """The text in the form of an answer."""
        raise NotImplementedError

    def asked(self, defaults: CompletionSettings) -> CompletionRequest:
        """The request for text."""
        raise NotImplementedError

    @property
    def streams(self) -> bool:
        return self._body.stream and not self._is_empty

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        if self._is_empty:
            return [replace(self._body.request("", "", defaults), max_tokens=1)]
        return [self.asked(defaults)]

    def answer(self, completions: Sequence[Completion]) -> Json:
        [completion] = completions
        if self._is_empty:
            reason = "unload" if self._body.unloads else "load"
            return {**self._event("", completion), "done": True, "done_reason": reason}
        return self._end(completion.text, completion)

    def part(self, text: str) -> Event:
        return {**self._event(text, None), "done": False}

    def end(self, text: str, completion: Completion) -> list[Event]:
        return [*([self.part(text)] if text else []), self._end("", completion)]

    def _end(self, text: str, completion: Completion) -> Json:
        trace, figures = completion.trace, about(completion)
        timings = figures["timings"]
        return {
            **self._event(text, completion),
            "done": True,
            "done_reason": "length" if was_cut(completion) else "stop",
            "total_duration": _ns(trace.ms),
            "load_duration": 0,
            "prompt_eval_count": trace.n_prompt_tokens,
            "prompt_eval_duration": _ns(timings["prompt_ms"]),
            "eval_count": trace.n_tokens - trace.n_repeated,
            "eval_duration": _ns(timings["predicted_ms"]),
            **figures,
            **({"warnings": self._warnings} if self._warnings else {}),
        }

    def _event(self, text: str, completion: Completion | None) -> Json:
        """Fields of every object of an answer. completion: the finished one if this ends it."""
        answering = completion.trace.model if completion else ""
        now = time_of(datetime.now(timezone.utc).timestamp())
        return {"model": answering or self._model, "created_at": now, **self.said(text)}


class OllamaGenerate(_OllamaAnswers[GenerateBody]):
    """POST /api/generate"""

    def __init__(self, raw: bytes, model: str) -> None:
        body = read(raw, GenerateBody, "options")
        super().__init__(body, model, is_empty=not body.prompt and not body.suffix)

    def said(self, text: str) -> Json:
        return {"response": text}

    def asked(self, defaults: CompletionSettings) -> CompletionRequest:
        body = self._body
        made = request_for(body, body.prompt, body.suffix, defaults)
        if made.is_plain and body.raw:
            return replace(made.request, raw=True)
        self._warnings = [*made.warnings]
        if made.is_plain and body.verbatim:
            chat = replace(made.request, messages=body.messages)
            return replace(chat, needs_template=bool(body.system))
        if body.system:
            self._warnings = [*made.warnings, _SYSTEM_LEFT_OUT]
        return made.request


class OllamaChat(_OllamaAnswers[OllamaChatBody]):
    """POST /api/chat"""

    def __init__(self, raw: bytes, model: str) -> None:
        body = read(raw, OllamaChatBody, "options")
        super().__init__(body, model, is_empty=not body.messages)

    def said(self, text: str) -> Json:
        return {"message": {"role": "assistant", "content": text}}

    def asked(self, defaults: CompletionSettings) -> CompletionRequest:
        messages = self._body.said
        made = self._body.request("\n\n".join(said.text for said in messages), "", defaults)
        return replace(made, messages=messages, shortens_chat=self._body.truncate)


def _ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)
