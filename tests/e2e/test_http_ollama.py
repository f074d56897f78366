"""Ollama's own client against the HTTP front: completions, chats, streams, models, errors."""

from __future__ import annotations

import datetime
import json
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

import ollama
import pytest

from codespec.config import load_settings
from tests.e2e.conftest import Home, report_of, until
from tests.http_client import Front, front_of
from tests.real_weights import smollm2

PREFIX = "import os\n\n\ndef read_file(path):\n    with open("
SUFFIX = "\n\n\ndef main():\n    pass\n"
QUESTION = {"role": "user", "content": "Write a Python function that adds two numbers."}


@contextmanager
def client_of(front: Front) -> Generator[ollama.Client]:
    until(lambda: front.ask("/health")[0] == 200)
    with ollama.Client(host=f"http://127.0.0.1:{front.port}", timeout=60) as client:
        yield client


@pytest.fixture
def front(home: Home) -> Iterator[Front]:
    with front_of(home.path) as found:
        yield found


@pytest.fixture
def client(front: Front) -> Iterator[ollama.Client]:
    with client_of(front) as found:
        yield found


def test_it_completes_as_openais_clients_are_told(
    front: Front, client: ollama.Client, home: Home
) -> None:
    expected = front.text(prompt=PREFIX, suffix=SUFFIX, max_tokens=24)
    options = {"num_predict": 24, "num_ctx": 4096}
    whole = client.generate("any:7b", PREFIX, suffix=SUFFIX, options=options)
    assert whole.response == expected != ""
    assert (whole.done, whole.done_reason) == (True, "length")
    assert whole.model == report_of(home.settings).model
    assert whole.eval_count == 24
    assert whole.total_duration
    assert whole.total_duration >= (whole.eval_duration or 0) > 0
    datetime.datetime.fromisoformat((whole.created_at or "").replace("Z", "+00:00"))

    *parts, last = client.generate("any", PREFIX, suffix=SUFFIX, options=options, stream=True)
    assert "".join(part.response or "" for part in parts) == expected
    assert not any(part.done for part in parts)
    assert (last.response, last.done, last.eval_count) == ("", True, 24)
    prompt = f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>"
    for raw in (False, True):
        assert client.generate("any", prompt, raw=raw, options=options).response == expected
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    held = client.generate("any", "answer = ", format=schema, options=options).response
    assert isinstance(json.loads(held or "")["ok"], bool)
    plain = front.text(prompt=PREFIX, max_tokens=24)
    assert client.generate("any", PREFIX, options=options).response == plain


def test_it_is_told_which_models_there_are(client: ollama.Client, home: Home) -> None:
    model = report_of(home.settings).model
    [listed] = client.list().models
    [running] = client.ps().models
    assert listed.model == running.model == f"{model}:latest"
    assert listed.size
    assert listed.size > 1e6
    assert running.context_length == load_settings().model.window(0)
    for name in (model, f"{model}:latest", "qwen2.5-coder:1.5b"):
        shown = client.show(name)
        assert shown.capabilities == ["completion", "insert"]
        assert ".Suffix" in (shown.template or "")
        info = shown.modelinfo or {}
        length = f"{info['general.architecture']}.context_length"
        assert info[length] == running.context_length
        assert shown.parameters == f"num_ctx {running.context_length}"


def test_it_says_what_is_wrong_in_ollamas_form(front: Front, client: ollama.Client) -> None:
    for ask, status, word in (
        (lambda: client.chat("any", [QUESTION]), 400, "chat template"),
        (lambda: client.generate("any", "x", options={"typical_p": 0.5}), 400, "typical_p"),
        (lambda: client.embed("any", "x"), 404, "/api/generate"),
    ):
        with pytest.raises(ollama.ResponseError, match=word) as refused:
            ask()
        assert refused.value.status_code == status
    with closing(front.connect()) as connection:
        connection.request("HEAD", "/")
        assert connection.getresponse().status == 200
    loaded = client.generate("any", keep_alive=0)
    assert (loaded.response, loaded.done_reason) == ("", "unload")


def test_chats_and_prompts_are_answered_by_a_model_for_chats(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", str(smollm2()))
    monkeypatch.setenv("CODESPEC_MODEL_DRAFT", "")
    options = {"num_predict": 16}
    with front_of(home.path) as front, client_of(front) as client:
        said = client.chat("any", [QUESTION], options=options)
        text = said.message.content
        assert text
        assert (said.message.role, said.eval_count) == ("assistant", 16)
        parts = client.chat("any", [QUESTION], options=options, stream=True)
        assert "".join(part.message.content or "" for part in parts) == text
        asked = client.generate("any", QUESTION["content"], options=options)
        assert asked.response == text
        body = {"messages": [QUESTION], "max_tokens": 16}
        status, answer = front.ask("/v1/chat/completions", body)
        assert (status, answer["choices"][0]["message"]["content"]) == (200, text)
        raw = client.generate("any", QUESTION["content"], raw=True, options=options)
        assert raw.response != text
        assert client.show("any").capabilities == ["completion"]
