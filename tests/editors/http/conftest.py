"""Two fronts for clients of HTTP: one with the bundled model, one with a model for chats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Home, until
from tests.e2e.conftest import home as home
from tests.e2e.conftest import shared_cache as shared_cache
from tests.editors.conftest import installed
from tests.http_client import Front, front_of
from tests.real_weights import smollm2

from . import install

PREFIX = "def load(path):\n    with open(path) as f:\n        return "
SUFFIX = "\n\n\ndef main():\n    pass\n"
QUESTION: dict[str, Any] = {
    "prompt": PREFIX,
    "suffix": SUFFIX,
    "fim": f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
    "messages": [{"role": "user", "content": "Write a Python function that adds two numbers."}],
    "n": 12,
}


@dataclass(frozen=True)
class Fronts:
    """code: with the bundled model. chat: with one for chats."""

    code: Front
    chat: Front

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{front.port}" for front in (self.code, self.chat)]

    @property
    def texts(self) -> tuple[str, str]:
        """The right answers to `QUESTION`: the completion, and the chat's."""
        n = QUESTION["n"]
        code = self.code.text(prompt=PREFIX, suffix=SUFFIX, max_tokens=n)
        body = {"messages": QUESTION["messages"], "max_tokens": n}
        status, answer = self.chat.ask("/v1/chat/completions", body)
        assert status == 200, answer
        return code, answer["choices"][0]["message"]["content"]


@pytest.fixture
def fronts(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fronts]:
    with front_of(home.path) as code:
        monkeypatch.setenv("CODESPEC_MODEL_TARGET", str(smollm2()))
        monkeypatch.setenv("CODESPEC_MODEL_DRAFT", "")
        with front_of(home.path) as chat:
            for front in (code, chat):
                until(lambda front=front: front.ask("/health")[0] == 200)
            yield Fronts(code, chat)


@pytest.fixture(scope="session")
def npm_folder() -> Path:
    return installed(install.node_clients)


@pytest.fixture(scope="session")
def litellm_python() -> Path:
    return installed(install.litellm)
