"""llama.vim's LlamaInstruct over HTTP: what becomes of the selected lines when the user accepts,
whatever the answer is. The bodies are those that the plug-in sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing

import pytest

from codespec import limits
from tests.e2e.conftest import Home
from tests.e2e.test_http_clients import CLIENTS
from tests.http_client import Front, front_of, refusal
from tests.real_weights import smollm2

PATH = "/v1/chat/completions"
WARM_UP, BODY = (
    exchange["body"] for exchange in CLIENTS["llama.vim"]["exchanges"] if exchange["path"] == PATH
)
SELECTED = ["def add(a, b):", "    c = a + b", "    return c"]


def accepted(front: Front, body: Mapping[str, object] | bytes = BODY) -> list[str]:
    """The lines that take the place of the selected ones, as the plug-in reads any answer."""
    result = ""
    with closing(front.begin(PATH, body)) as connection:
        raw = connection.getresponse().read().decode()
    for line in raw.split("\n"):
        try:
            choice = json.loads(line.removeprefix("data: "))["choices"][0]
        except (ValueError, LookupError):
            continue
        said = choice["delta" if "delta" in choice else "message"]
        result += str(said.get("content", ""))
    return result.rstrip("\n").split("\n") if result else []


def test_without_an_instruct_model_a_sentence_says_so_and_the_lines_stay(home: Home) -> None:
    with front_of(home.path) as front:
        assert front.ask(PATH, WARM_UP)[0] == 200
        said, *kept = accepted(front)
        assert all(word in said for word in ("codespec", "no chat template", "trained on chats"))
        assert kept == SELECTED
        # Any other chat is refused.
        for change in ({"stream": False}, {"messages": BODY["messages"][1:]}):
            refusal(front.ask(PATH, {**BODY, **change}), 400, "no chat template")


def test_whatever_is_refused_is_a_sentence(home: Home) -> None:
    (home.path / "keys").write_text("k" * 32)
    huge = json.dumps({**BODY, "more": "x" * limits.BODY_BYTES}).encode()
    with front_of(home.path, "--key-file", str(home.path / "keys")) as front:
        known = Front(front.port, front.log, "k" * 32)
        cases: list[tuple[Front, Mapping[str, object] | bytes, str]] = [
            (front, BODY, "key is needed"),
            (known, b"{", "not JSON"),
            (known, {**BODY, "n": 2}, "n is not supported"),
            (known, huge, "at most"),
        ]
        for asked, body, words in cases:
            said = accepted(asked, body)
            assert said
            assert words in said[0]


def test_an_instruct_model_answers_drafted_from_the_selection(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", str(smollm2()))
    monkeypatch.setenv("CODESPEC_MODEL_DRAFT", "")
    with front_of(home.path) as front:
        greedy = {**BODY, "temperature": 0.0}
        *_, last, done = front.stream(PATH, {**greedy, "max_tokens": 8})
        assert done == "[DONE]"
        assert last["choices"][0]["finish_reason"] == "length"
        answer = "\n".join(accepted(front, {**greedy, "max_tokens": 8}))
        own, _, remark = answer.partition("\ncodespec: ")
        assert own
        said, *kept = remark.split("\n")
        assert "limit" in said
        assert kept == SELECTED
        # A text of the selection alone is the answer's own without one.
        plain = {**greedy, "stream": False, "max_tokens": 8}
        assert front.ask(PATH, plain)[1]["choices"][0]["message"]["content"] == own
