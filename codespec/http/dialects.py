"""HTTP dialects, in JSON: the parts that all have in common, and OpenAI's completions and chats.

All come down to one `CompletionRequest` and one `Completion`; `bodies` defines the requests'
fields. Source: the OpenAI API reference,
https://platform.openai.com/docs/api-reference/completions.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from codespec import limits
from codespec.config import CompletionSettings
from codespec.context.templates import PromptParts, has_markers, parted
from codespec.edits.formats.registry import form_of
from codespec.http.bodies import (
    Body,
    BodyDocument,
    ChatBody,
    CompletionsBody,
    FieldError,
    OpenAIBody,
    read,
    snippets_of,
)
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace

Json: TypeAlias = dict[str, Any]
Event: TypeAlias = "Json | str"
_B = TypeVar("_B", bound=Body)

_O = TypeVar("_O", bound=OpenAIBody)

_NO_TEMPLATE = (
    "a prompt uses FIM markers in no form that is known, and was read as plain text; send prompt "
    "and suffix, or raw: true if the model that completes knows the form"
)


class Dialect(Protocol):
    """One request in a dialect: its body, read, and the form of its answer."""

    def __init__(self, raw: bytes, model: str) -> None:
        """model: name of the model that will answer, "" while it is not known. Raises:
        FieldError."""
        ...

    @property
    def document(self) -> BodyDocument: ...

    @property
    def streams(self) -> bool: ...

    @property
    def only_reads(self) -> bool:
        """True if no text is wanted: the prompt is to be read (prefill), for a request that will
        come."""
        ...

    @property
    def warnings(self) -> list[str]:
        """Sentences about a request that is answered otherwise than it may be meant, without text
        of it. Known once the requests are made."""
        ...

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        """The requests of this body: one, or several to be answered in turn, which are not
        streamed. Workspace and path are left to `Access.place`."""
        ...

    def answer(self, completions: Sequence[Completion]) -> Json:
        """The whole answer. completions: those of all requests, in their order."""
        ...

    def part(self, text: str) -> Event:
        """Event of a stream: more text."""
        ...

    def end(self, text: str, completion: Completion) -> list[Event]:
        """Last events of a stream. text: the rest that was not sent yet."""
        ...


class OfBody(Generic[_B]):
    """The parts of a `Dialect` that follow from the fields which all bodies have."""

    def __init__(self, body: _B, model: str) -> None:
        self._body, self._model = body, model
        self._warnings = list[str]()

    @property
    def warnings(self) -> list[str]:
        return self._warnings

    @property
    def document(self) -> BodyDocument:
        return self._body

    @property
    def streams(self) -> bool:
        return self._body.stream

    @property
    def only_reads(self) -> bool:
        return self._body.n_tokens == 0


class _OpenAI(OfBody[_O]):
    """The parts of a `Dialect` that OpenAI's have in common. kind: of the whole answer; a stream's
    events have another in a chat."""

    kind: str
    kind_of_part: str

    def __init__(self, body: _O, model: str, name: str) -> None:
        """name: begins the answer's id."""
        super().__init__(body, model)
        self._id = f"{name}-{secrets.token_hex(12)}"
        self._created = int(time.time())

    def choice(self, text: str, completion: Completion | None, *, is_part: bool) -> Json:
        """One choice of an answer. completion: the finished one if `text` ends it, else None."""
        raise NotImplementedError

    def answer(self, completions: Sequence[Completion]) -> Json:
        """The whole answer; with several completions, each choice has its own timings."""
        usage = self._usage(*(completion.trace for completion in completions))
        if len(completions) == 1:
            [completion] = completions
            return self._event(completion.text, completion, is_part=False) | {"usage": usage}
        found = self._event("", None, is_part=False)
        found["model"] = completions[0].trace.model or self._model
        found["choices"] = [
            {
                **self.choice(completion.text, completion, is_part=False),
                "index": index,
                **about(completion),
            }
            for index, completion in enumerate(completions)
        ]
        return found | self._warned() | {"usage": usage}

    def part(self, text: str) -> Event:
        return self._event(text, None)

    def end(self, text: str, completion: Completion) -> list[Event]:
        events: list[Event] = [self._event(text, completion)]
        if self._body.stream_options.include_usage:
            usage = {"choices": [], "usage": self._usage(completion.trace)}
            events.append(self._event("", None) | usage)
        return [*events, "[DONE]"]

    def _usage(self, *traces: Trace) -> Json:
        usage = _usage(*traces)
        return usage | _predicted(*traces) if self._body.prediction is not None else usage

    def _event(self, text: str, completion: Completion | None, *, is_part: bool = True) -> Json:
        """One event of a stream, or all of an answer. completion: the finished one if `text` ends
        it, else None."""
        found: Json = {
            "id": self._id,
            "object": self.kind_of_part if is_part else self.kind,
            "created": self._created,
            "model": self._model,
            "choices": [self.choice(text, completion, is_part=is_part)],
        }
        if completion is not None:
            found |= {"model": completion.trace.model or self._model, **about(completion)}
            found |= self._warned()
        return found

    def _warned(self) -> Json:
        return {"warnings": self._warnings} if self._warnings else {}


class OpenAICompletions(_OpenAI[CompletionsBody]):
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
        return {"text": text, "index": 0, "logprobs": None, "finish_reason": _finish(completion)}


class OpenAIChat(_OpenAI[ChatBody]):
    """POST /v1/chat/completions"""

    kind = "chat.completion"
    kind_of_part = "chat.completion.chunk"

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, ChatBody), model, "chatcmpl")
        self._has_begun = False

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        messages = tuple(message.said for message in self._body.messages)
        made = self._body.request("\n\n".join(said.text for said in messages), "", defaults)
        return [replace(made, messages=messages, rewrites=self._body.predicted)]

    def choice(self, text: str, completion: Completion | None, *, is_part: bool) -> Json:
        said: Json = {"content": text}
        if not (is_part and self._has_begun):
            said = {"role": "assistant", **said}
        self._has_begun |= is_part
        key = "delta" if is_part else "message"
        return {"index": 0, key: said, "logprobs": None, "finish_reason": _finish(completion)}


def was_cut(completion: Completion) -> bool:
    """True if a limit ended the text: of tokens, of time or of the client's own."""
    return completion.finish in ("length", "deadline") or completion.trace.is_limited


def _finish(completion: Completion | None) -> str | None:
    """Cause of an answer's end; None for one that goes on."""
    return None if completion is None else "length" if was_cut(completion) else "stop"


def _usage(*traces: Trace) -> Json:
    n_prompt = sum(trace.n_prompt_tokens for trace in traces)
    # The tokens that `max_tokens` counts.
    n_completion = sum(trace.n_tokens - trace.n_repeated for trace in traces)
    return {
        "prompt_tokens": n_prompt,
        "completion_tokens": n_completion,
        "total_tokens": n_prompt + n_completion,
    }


def _predicted(*traces: Trace) -> Json:
    """Tokens of a prediction that are in the answers, and those that are not, as the usage of an
    answer tells them.

    Source: https://platform.openai.com/docs/api-reference/completions/object
    """
    n_accepted = sum(trace.n_old_copied for trace in traces)
    n_rejected = sum(trace.n_old for trace in traces) - n_accepted
    details = {"accepted_prediction_tokens": n_accepted, "rejected_prediction_tokens": n_rejected}
    return {"completion_tokens_details": details}


def about(completion: Completion) -> Json:
    """Figures of a completion by llama.cpp's names and some of our own: tokens read, times, and the
    reason if there is no text."""
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
    if completion.why is not None:
        about |= {"reason": completion.reason, "reason_key": completion.why.value}
    return about
