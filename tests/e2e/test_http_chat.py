"""Chats over HTTP, with a model that was trained on some: whole and streamed, predicted or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Home
from tests.http_client import Front, front_of, refusal
from tests.real_weights import smollm2

PATH = "/v1/chat/completions"
BODY = {
    "messages": [
        {"role": "system", "content": "You are a helpful assistant."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Write a Python function that adds two numbers."}],
        },
    ],
    "max_completion_tokens": 24,
}


@pytest.fixture
def front(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", str(smollm2()))
    monkeypatch.setenv("CODESPEC_MODEL_DRAFT", "")
    with front_of(home.path) as found:
        yield found


def test_a_chat_is_the_same_streamed_and_predicted(front: Front) -> None:
    status, whole = front.ask(PATH, BODY)
    assert status == 200
    [choice] = whole["choices"]
    text = choice["message"]["content"]
    assert len(text) > 20
    assert "<|im" not in text
    assert choice["finish_reason"] == "length"
    assert whole["usage"]["completion_tokens"] == 24

    *events, usage, done = front.stream(PATH, {**BODY, "stream_options": {"include_usage": True}})
    assert done == "[DONE]"
    assert usage["usage"] == whole["usage"]
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta["content"] for delta in deltas) == text

    prediction = {"type": "content", "content": text}
    _, predicted = front.ask(PATH, {**BODY, "prediction": prediction})
    assert predicted["choices"][0]["message"]["content"] == text
    details = predicted["usage"]["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] > 8
    assert predicted["timings"]["passes_n"] < whole["timings"]["passes_n"]


def test_a_chat_that_is_too_long_is_refused(front: Front) -> None:
    long = {"role": "user", "content": "one two three four " * 20_000}
    refusal(front.ask(PATH, {"messages": [long]}), 400, "tokens", "model.n_ctx")
