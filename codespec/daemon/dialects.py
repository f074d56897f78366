"""How HTTP clients are answered, in JSON: OpenAI's completions and llama.cpp's infill.

Both come down to one `CompletionRequest` and one `Completion`; `bodies` says what may be asked.
Sources: the OpenAI API reference, https://platform.openai.com/docs/api-reference/completions;
llama.cpp, tools/server/README.md.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from codespec.config import CompletionSettings
from codespec.context.templates import Parts, parted
from codespec.daemon.bodies import CompletionsBody, Document, InfillBody, read, shown
from codespec.engine.until import STOPPED
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace

Json: TypeAlias = dict[str, Any]
Event: TypeAlias = "Json | str"


class Dialect(Protocol):
    """One request's body, read, and how it is answered."""

    def __init__(self, raw: bytes, model: str) -> None:
        """model: the one that will answer, "" while it is not known. Raises: FieldError."""
        ...

    @property
    def document(self) -> Document: ...

    @property
    def streams(self) -> bool: ...

    @property
    def only_reads(self) -> bool:
        """No text is wanted: the prompt is to be read, for a request that will come."""
        ...

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        """One, or several to be answered in turn, which are not streamed. Without path and
        workspace, which not everybody may name."""
        ...

    def answer(self, completions: Sequence[Completion]) -> Json:
        """completions: of all requests."""
        ...

    def part(self, text: str) -> Event:
        """Of a stream: more text."""
        ...

    def end(self, text: str, completion: Completion) -> list[Event]:
        """Of a stream, the last events; `text`: what was not sent yet."""
        ...


class OpenAICompletions:
    """POST /v1/completions"""

    def __init__(self, raw: bytes, model: str) -> None:
        self._body = read(raw, CompletionsBody)
        self._model = model
        self._id = f"cmpl-{secrets.token_hex(12)}"
        self._created = int(time.time())

    @property
    def document(self) -> Document:
        return self._body

    @property
    def streams(self) -> bool:
        return self._body.stream

    @property
    def only_reads(self) -> bool:
        return self._body.n_tokens == 0

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        return [self._request(prompt, defaults) for prompt in self._body.prompts]

    def _request(self, prompt: str, defaults: CompletionSettings) -> CompletionRequest:
        body = self._body
        parts = Parts(prompt, body.suffix) if body.suffix else parted(prompt)
        made = body.request(parts.prefix, parts.suffix, defaults)
        return replace(made, extra=shown(parts.files))

    def answer(self, completions: Sequence[Completion]) -> Json:
        """Of several, each choice says what it took."""
        usage = _usage(*(completion.trace for completion in completions))
        if len(completions) == 1:
            return self._event(completions[0].text, completions[0]) | {"usage": usage}
        found = self._event("", None)
        found["model"] = completions[0].trace.model or self._model
        found["choices"] = [
            {**_choice(completion.text, completion), "index": index, **_about(completion)}
            for index, completion in enumerate(completions)
        ]
        return found | {"usage": usage}

    def part(self, text: str) -> Event:
        return self._event(text, None)

    def end(self, text: str, completion: Completion) -> list[Event]:
        events: list[Event] = [self._event(text, completion)]
        if self._body.stream_options.include_usage:
            usage = {"choices": [], "usage": _usage(completion.trace)}
            events.append(self._event("", None) | usage)
        return [*events, "[DONE]"]

    def _event(self, text: str, completion: Completion | None) -> Json:
        """completion: where `text` ends it."""
        found: Json = {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "model": self._model,
            "choices": [_choice(text, completion)],
        }
        if completion is not None:
            found |= {"model": completion.trace.model or self._model, **_about(completion)}
        return found


class Infill:
    """POST /infill. Always one text, whatever `n_cmpl` says; no `samplers`: their order is ours."""

    def __init__(self, raw: bytes, model: str) -> None:
        self._body = read(raw, InfillBody)
        self._model = model

    @property
    def document(self) -> Document:
        return self._body

    @property
    def streams(self) -> bool:
        return self._body.stream

    @property
    def only_reads(self) -> bool:
        return self._body.n_tokens == 0

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        body = self._body
        prefix = body.input_prefix + body.prompt
        request = replace(
            body.request(prefix, body.input_suffix, defaults),
            min_indent=body.n_indent,
            max_line_ms=body.t_max_predict_ms,
            # An editor, which asks with each key and waits for the prompt to be read.
            whole=body.verbatim and body.t_max_predict_ms <= 0,
            extra=shown((extra.filename or "", extra.text) for extra in body.input_extra),
        )
        return [request]

    def answer(self, completions: Sequence[Completion]) -> Json:
        [completion] = completions
        found = self._end(completion.text, completion)
        if self._body.response_fields is None:
            return found
        return _picked(found, self._body.response_fields)

    def part(self, text: str) -> Event:
        return {"index": 0, "content": text, "stop": False}

    def end(self, text: str, completion: Completion) -> list[Event]:
        return [self._end(text, completion)]

    def _end(self, text: str, completion: Completion) -> Json:
        trace = completion.trace
        stop_type = "word" if STOPPED in trace.trimmed else "eos"
        return {
            "index": 0,
            "content": text,
            "stop": True,
            "model": trace.model or self._model,
            "tokens_predicted": trace.n_tokens,
            "tokens_evaluated": trace.n_prompt_tokens,
            "tokens_cached": trace.n_prompt_cached,
            "stop_type": "limit" if _was_cut(completion) else stop_type,
            **_about(completion),
        }


def _was_cut(completion: Completion) -> bool:
    return completion.finish in ("length", "deadline") or completion.trace.is_limited


def _choice(text: str, completion: Completion | None) -> Json:
    """completion: where `text` ends it."""
    finish = None if completion is None else "length" if _was_cut(completion) else "stop"
    return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}


def _usage(*traces: Trace) -> Json:
    n_prompt = sum(trace.n_prompt_tokens for trace in traces)
    # What `max_tokens` counts.
    n_completion = sum(trace.n_tokens - trace.n_repeated for trace in traces)
    return {
        "prompt_tokens": n_prompt,
        "completion_tokens": n_completion,
        "total_tokens": n_prompt + n_completion,
    }


def _about(completion: Completion) -> Json:
    """What was read, what it took, by llama.cpp's names and some of ours; why there is no text."""
    trace = completion.trace
    read_ms = trace.first_token_ms
    write_ms = max(0.0, trace.ms - trace.context_ms - read_ms)
    n_read, n_written = trace.n_prompt_tokens - trace.n_prompt_cached, trace.n_tokens
    timings: Json = {
        "cache_n": trace.n_prompt_cached,
        "prompt_n": n_read,
        "prompt_ms": read_ms,
        "prompt_per_token_ms": read_ms / max(1, n_read),
        "prompt_per_second": 1e3 * n_read / max(1e-3, read_ms),
        "predicted_n": n_written,
        "predicted_ms": write_ms,
        "predicted_per_token_ms": write_ms / max(1, n_written),
        "predicted_per_second": 1e3 * n_written / max(1e-3, write_ms),
        "draft_n": trace.n_drafted,
        "draft_n_accepted": trace.n_accepted,
        "passes_n": trace.n_target_passes,
        "paused_ms": trace.paused_ms,
        "drafts": {
            source: {"draft_n": stats.n_drafted, "draft_n_accepted": stats.n_accepted}
            for source, stats in trace.by_source.items()
        },
    }
    about: Json = {"truncated": trace.n_left_out > 0, "timings": timings}
    return about | ({"reason": completion.reason} if completion.reason else {})


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
