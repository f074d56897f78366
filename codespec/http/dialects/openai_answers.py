"""The parts of an answer, and of an error, that OpenAI's completions and chats have in common.

Source: the OpenAI API reference, https://platform.openai.com/docs/api-reference/completions.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import TypeVar

from codespec.http.bodies import OpenAIBody
from codespec.http.dialects.base import Event, Json, OfBody, about, was_cut
from codespec.requests import Completion
from codespec.types import Trace

_O = TypeVar("_O", bound=OpenAIBody)

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


class OpenAIAnswers(OfBody[_O]):
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


def chat_choice(said: Json, completion: Completion | None, *, is_part: bool) -> Json:
    """The only choice of a chat's answer. said: the message. completion: see `finish_of`."""
    key = "delta" if is_part else "message"
    return {"index": 0, key: said, "logprobs": None, "finish_reason": finish_of(completion)}


def finish_of(completion: Completion | None) -> str | None:
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


def error_of(status: int, message: str, field: str) -> Json:
    """An error in OpenAI's form, which is llama-server's, too."""
    kind = _KINDS.get(status, _KINDS[400])
    return {"error": {"message": message, "type": kind, "param": field or None, "code": status}}
