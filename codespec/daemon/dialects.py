"""What HTTP clients say and hear, in JSON: OpenAI's completions and llama.cpp's infill.

Both come down to one `CompletionRequest` and one `Completion`. Fields that are not named here are
ignored, `model` among them; one that is named and cannot be honoured is an error that names it.
Sources: the OpenAI API reference, https://platform.openai.com/docs/api-reference/completions;
llama.cpp, tools/server/README.md.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar

import msgspec

from codespec.config import CompletionSettings
from codespec.context.templates import Parts, parted
from codespec.engine.until import STOPPED
from codespec.errors import InputError
from codespec.index.text import normalise
from codespec.requests import (
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    Completion,
    CompletionRequest,
)
from codespec.types import SamplingParams, Snippet, Trace

Json: TypeAlias = dict[str, Any]
Event: TypeAlias = "Json | str"

_ALL_THERE_IS = 1 << 20
"""Tokens: as many as the model's context holds."""
_ANY_TOKEN = 1 << 30
"""For `top_k`: no vocabulary is larger."""
_MAX_GRAMMAR_CHARS = 1 << 16
"""Reading a grammar and following it take time, and cannot be interrupted."""
_OUTERMOST = re.compile(r"\n(?=[^\s)\]}])")
"""The end of a line before one that may begin a definition."""

_LIKELIEST = 1e-9
"""A `top_p` that leaves the likeliest token alone, which is what 0 asks for."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=_ALL_THERE_IS)]
_Penalty = Annotated[float, msgspec.Meta(ge=-100, le=100)]


class FieldError(InputError):
    """A request that cannot be honoured. `field`: which of its fields is why, "" for none."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


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

    def request(self, defaults: CompletionSettings) -> CompletionRequest:
        """Without path and workspace, which not everybody may name. Raises: FieldError."""
        ...

    def answer(self, completion: Completion) -> Json: ...

    def part(self, text: str) -> Event:
        """Of a stream: more text."""
        ...

    def end(self, text: str, completion: Completion) -> list[Event]:
        """Of a stream, the last events; `text`: what was not sent yet."""
        ...


class Document(msgspec.Struct, kw_only=True):
    """Our own fields: which document of which workspace this is. `verbatim` false: what an editor
    would suggest, a syntactic unit that fits what follows, in place of the model's own text."""

    workspace: str | None = None  # None: the server's first
    path: str = ""  # absolute, or from the workspace's folder
    language: str = ""
    verbatim: bool = True


class _Body(Document, kw_only=True):
    """What both dialects have in common."""

    stream: bool | None = False
    stop: str | Annotated[list[str], msgspec.Meta(max_length=64)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_k: int | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    min_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    repeat_penalty: Annotated[float, msgspec.Meta(ge=0.01, le=100)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=-1, le=(1 << 63) - 1)] | None = None
    grammar: Annotated[str, msgspec.Meta(max_length=_MAX_GRAMMAR_CHARS)] | None = None

    def request(
        self, prefix: str, suffix: str, max_tokens: int | None, defaults: CompletionSettings
    ) -> CompletionRequest:
        prefix, suffix = normalise(prefix), normalise(suffix)
        if not self.verbatim:
            prefix, suffix = _end_of(prefix, MAX_PREFIX_CHARS), _start_of(suffix, MAX_SUFFIX_CHARS)
        temperature = defaults.temperature if self.temperature is None else self.temperature
        seed = -1 if self.seed is None else self.seed
        return CompletionRequest(
            prefix=prefix,
            suffix=suffix,
            language_id=self.language,
            max_tokens=defaults.max_tokens if max_tokens is None else max_tokens,
            sampling=SamplingParams(
                temperature=temperature,
                top_k=min(max(0, self.top_k or 0), _ANY_TOKEN),
                top_p=1.0 if self.top_p is None else max(self.top_p, _LIKELIEST),
                min_p=self.min_p or 0.0,
                repetition_penalty=self.repeat_penalty or 1.0,
                frequency_penalty=self.frequency_penalty or 0.0,
                presence_penalty=self.presence_penalty or 0.0,
                seed=secrets.randbits(62) if seed < 0 else seed,
                any_seed=seed < 0,
                grammar=self.grammar or "",
            ),
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
            verbatim=self.verbatim,
            whole=self.verbatim,
        )


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = False


class _CompletionsBody(_Body, kw_only=True):
    prompt: str | list[str]
    suffix: str | None = None
    max_tokens: _Count | None = None
    n: int | None = None
    best_of: int | None = None
    echo: bool | None = None
    logprobs: int | None = None
    logit_bias: dict[str, float] | None = None
    stream_options: _StreamOptions | None = None


class OpenAICompletions:
    """POST /v1/completions"""

    def __init__(self, raw: bytes, model: str) -> None:
        self._body = body = _decode(raw, _CompletionsBody)
        self._model = model
        self._id = f"cmpl-{secrets.token_hex(12)}"
        self._created = int(time.time())
        for field, is_asked in (
            ("n", body.n not in (None, 1)),
            ("best_of", body.best_of not in (None, 1)),
            ("echo", body.echo),
            ("logprobs", body.logprobs is not None),
            ("logit_bias", body.logit_bias),
        ):
            if is_asked:
                raise FieldError(field, f"{field} is not supported; leave it out")
        if body.prompt == []:
            raise FieldError("prompt", "the list of prompts is empty")
        if isinstance(body.prompt, list) and len(body.prompt) > 1:
            raise FieldError("prompt", "several prompts are not supported; send them one by one")

    @property
    def document(self) -> Document:
        return self._body

    @property
    def streams(self) -> bool:
        return bool(self._body.stream)

    @property
    def only_reads(self) -> bool:
        return self._body.max_tokens == 0

    def request(self, defaults: CompletionSettings) -> CompletionRequest:
        body = self._body
        prompt = body.prompt if isinstance(body.prompt, str) else body.prompt[0]
        parts = Parts(prompt, body.suffix) if body.suffix else parted(prompt)
        made = body.request(parts.prefix, parts.suffix, body.max_tokens, defaults)
        return replace(made, extra=_shown(parts.files))

    def answer(self, completion: Completion) -> Json:
        found = self._event(completion.text, completion)
        return found | {"usage": _usage(completion.trace)}

    def part(self, text: str) -> Event:
        return self._event(text, None)

    def end(self, text: str, completion: Completion) -> list[Event]:
        events: list[Event] = [self._event(text, completion)]
        options = self._body.stream_options
        if options is not None and options.include_usage:
            usage = {"choices": [], "usage": _usage(completion.trace)}
            events.append(self._event("", None) | usage)
        return [*events, "[DONE]"]

    def _event(self, text: str, completion: Completion | None) -> Json:
        """completion: where `text` ends it."""
        choice: Json = {"text": text, "index": 0, "logprobs": None, "finish_reason": None}
        found: Json = {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "model": self._model,
            "choices": [choice],
        }
        if completion is not None:
            choice["finish_reason"] = "length" if _was_cut(completion) else "stop"
            found |= {"model": completion.trace.model or self._model, **_about(completion)}
        return found


class _Extra(msgspec.Struct):
    text: str
    filename: str = ""


class _InfillBody(_Body, kw_only=True):
    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: list[_Extra] = []
    prompt: str = ""  # what stands before the cursor in its line
    n_predict: Annotated[int, msgspec.Meta(ge=-1, le=_ALL_THERE_IS)] | None = None
    n_indent: _Count = 0
    t_max_predict_ms: float = 0.0
    response_fields: list[str] | None = None


class Infill:
    """POST /infill. Always one text, whatever `n_cmpl` says; no `samplers`: their order is ours."""

    def __init__(self, raw: bytes, model: str) -> None:
        self._body = _decode(raw, _InfillBody)
        self._model = model

    @property
    def document(self) -> Document:
        return self._body

    @property
    def streams(self) -> bool:
        return bool(self._body.stream)

    @property
    def only_reads(self) -> bool:
        return self._body.n_predict == 0

    def request(self, defaults: CompletionSettings) -> CompletionRequest:
        body = self._body
        n_predict = _ALL_THERE_IS if body.n_predict == -1 else body.n_predict
        prefix = body.input_prefix + body.prompt
        return replace(
            body.request(prefix, body.input_suffix, n_predict, defaults),
            min_indent=body.n_indent,
            max_line_ms=body.t_max_predict_ms,
            # An editor, which asks with each key and waits for the prompt to be read.
            whole=body.verbatim and body.t_max_predict_ms <= 0,
            extra=_shown((extra.filename, extra.text) for extra in body.input_extra),
        )

    def answer(self, completion: Completion) -> Json:
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


_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def _decode(raw: bytes, kind: type[_Struct]) -> _Struct:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as e:
        # Names fields and types, never text.
        place = re.search(r" - at `\$\.?(\w*)|required field `(\w+)", str(e))
        raise FieldError((place[1] or place[2] or "") if place else "", str(e)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        detail = str(e) if isinstance(e, msgspec.DecodeError) else type(e).__name__
        raise FieldError("", f"the body is not JSON: {detail}") from None


def _shown(files: Iterable[tuple[str, str]]) -> tuple[Snippet, ...]:
    """Of (name, text) pairs."""
    return tuple(
        Snippet("buffers", name, normalise(text).rstrip(), "sent by the client")
        for name, text in files
    )


def _end_of(text: str, n_chars: int) -> str:
    """At most so many characters, from where a definition may begin, if that is not far: within
    one, parsers would find errors, and each character typed would give another beginning."""
    start = len(text) - n_chars
    if start <= 0:
        return text
    place = _OUTERMOST.search(text, start, start + n_chars // 2)
    return text[place.end() if place else start :]


def _start_of(text: str, n_chars: int) -> str:
    """Likewise, up to the end of a definition."""
    if len(text) <= n_chars:
        return text
    places = [place.end() for place in _OUTERMOST.finditer(text, n_chars // 2, n_chars)]
    return text[: places[-1] if places else n_chars]


def _was_cut(completion: Completion) -> bool:
    return completion.finish in ("length", "deadline") or completion.trace.is_limited


def _usage(trace: Trace) -> Json:
    n_completion = trace.n_tokens - trace.n_repeated  # what `max_tokens` counts
    return {
        "prompt_tokens": trace.n_prompt_tokens,
        "completion_tokens": n_completion,
        "total_tokens": trace.n_prompt_tokens + n_completion,
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
