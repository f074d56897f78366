"""Chats over HTTP: their bodies, read, and the form of their answers."""

from __future__ import annotations

import json

import pytest

from codespec.config import CompletionSettings
from codespec.http.dialects.base import Dialect
from codespec.http.dialects.chats import OpenAIChat
from codespec.http.field_error import FieldError
from codespec.requests import ChatMessage, Completion, CompletionRequest
from codespec.types import Trace


def requested(asked: Dialect) -> CompletionRequest:
    [request] = asked.requests(CompletionSettings())
    return request


def chat(**fields: object) -> OpenAIChat:
    messages = [{"role": "developer", "content": "a\r\n"}, {"role": "user", "content": "b"}]
    return OpenAIChat(json.dumps({"messages": messages, **fields}).encode(), "m")


def test_a_chat_is_asked_by_its_messages() -> None:
    made = requested(chat(max_completion_tokens=7, prediction={"content": "c"}))
    assert made.messages == (ChatMessage("system", "a\n"), ChatMessage("user", "b"))
    assert (made.prefix, made.rewrites, made.max_tokens) == ("a\n\n\nb", "c", 7)
    assert made.verbatim
    assert made.whole
    parts = [{"role": "user", "content": [{"type": "text", "text": "x"}, {"text": "y"}]}]
    assert requested(chat(messages=parts)).messages == (ChatMessage("user", "xy"),)
    assert requested(chat(max_tokens=9)).max_tokens == 9


def test_answers_of_a_chat() -> None:
    asked = chat(prediction={"content": "c"}, stream_options={"include_usage": True})
    said = CompletionRequest("").insertion("said")
    whole = asked.answer([Completion(said, "stop", trace=Trace(n_tokens=3))])
    assert whole["object"] == "chat.completion"
    [choice] = whole["choices"]
    assert choice["message"] == {"role": "assistant", "content": "said"}
    assert choice["finish_reason"] == "stop"
    details = {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
    assert whole["usage"]["completion_tokens_details"] == details
    first, second = asked.part("sa"), asked.part("id")
    *rest, usage, done = asked.end("!", Completion(said, "length"))
    assert done == "[DONE]"
    events = [event for event in (first, second, *rest, usage) if isinstance(event, dict)]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert len({event["id"] for event in (*events, whole)}) == 1
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    assert deltas == [{"role": "assistant", "content": "sa"}, {"content": "id"}, {"content": "!"}]
    assert events[-2]["choices"][0]["finish_reason"] == "length"
    assert events[-1]["usage"]["completion_tokens"] == 0


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"functions": [{}]}, "functions"),
        ({"verbatim": False}, "verbatim"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "x", "text": ""}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "messages"),
        ({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}, "messages"),
        ({"regex": "a+"}, "regex"),
        ({"prediction": {"type": "diff", "content": ""}}, "prediction"),
        ({"n": 2}, "n"),
    ],
)
def test_what_a_chat_cannot_honour_is_named(fields: dict[str, object], field: str) -> None:
    with pytest.raises(FieldError, match=field) as refused:
        chat(**fields)
    assert refused.value.field == field


def test_parts_that_are_no_text_are_named_by_their_type() -> None:
    for kind in ("image_url", "input_audio", "file"):
        with pytest.raises(FieldError, match=kind):
            chat(messages=[{"role": "user", "content": [{"type": kind, kind: {}}]}])


def test_what_is_empty_in_a_message_asks_for_nothing() -> None:
    said = {"role": "assistant", "content": "a", "tool_calls": [], "audio": None, "refusal": None}
    assert requested(chat(messages=[said])).messages == (ChatMessage("assistant", "a"),)


def test_samplers_that_a_list_leaves_out_do_not_act() -> None:
    given = {"temperature": 0.5, "top_k": 5, "top_p": 0.5, "min_p": 0.1}
    for samplers in ("kt", ["top_k", "temperature"]):
        sampling = requested(chat(**given, samplers=samplers)).sampling
        assert (sampling.top_k, sampling.top_p, sampling.min_p) == (5, 1.0, 0.0)
