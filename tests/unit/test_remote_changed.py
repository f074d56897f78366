"""A server that gets another model while it is used: that is not asked as the one before was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from codespec.backends.base import Model
from codespec.backends.registry import open_vocabulary
from codespec.backends.remote import failures, served_generator
from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.engine.served import ServedEngine
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest
from tests.scripted_server import (
    Exchange,
    Route,
    ScriptedServer,
    completion,
    models,
    scripted_server,
)

COMPLETIONS = "/v1/completions"
ASKED = CompletionRequest(
    "def f():\n    a = 1\n", "\nx = 1\n", path="/w/a.py", language_id="python", max_tokens=8
)
SAID = "    b = 2\n"

Opened = tuple[ServedEngine, ScriptedServer]


@pytest.fixture
def vocabulary() -> Iterator[Model]:
    with closing(open_vocabulary(bundled(BUNDLED_TARGET))) as opened:
        yield opened


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Opened]]:
    """Opens an engine over a server with these routes."""
    monkeypatch.setattr(failures, "PAUSE_S", 0.0)
    with ExitStack() as stack:

        def opened(routes: dict[str, Route], **server: object) -> Opened:
            running = stack.enter_context(scripted_server(routes))
            options = {"model": {"target": running.url, "draft": ""}, "server": server}
            engine = ServedEngine(load_settings(options, env={}), LocalEngine)
            return stack.enter_context(closing(engine)), running

        yield opened


def serving(name: str) -> dict[str, Route]:
    """A server that knows one model, by its name."""

    def complete(exchange: Exchange) -> None:
        if exchange.body["model"] == name:
            completion([SAID])(exchange)
        else:
            exchange.answer({}, 404)

    return {"/v1/models": models(name=name), COMPLETIONS: complete}


def test_the_model_that_it_has_now_is_asked(opens: Callable[..., Opened]) -> None:
    engine, server = opens(serving("qwen2.5-coder"))
    assert engine.complete(ASKED).text == SAID.rstrip()
    server.routes |= serving("starcoder2")
    assert engine.complete(ASKED).text == "", "this one finds out"
    done = engine.complete(ASKED)
    assert (done.text, done.trace.model, engine.notice) == (SAID.rstrip(), "starcoder2", "")
    asked = [body for body in server.asked(COMPLETIONS) if body["model"] == "starcoder2"]
    assert all(body["prompt"].startswith("<fim_prefix>") for body in asked)


def test_a_server_that_gets_one_more_model_is_asked_for_the_same(
    opens: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, server = opens(serving("qwen2.5-coder"))
    assert engine.complete(ASKED).text == SAID.rstrip()
    listed = [{"id": name, "owned_by": ""} for name in ("starcoder2", "qwen2.5-coder")]
    server.routes["/v1/models"] = lambda exchange: exchange.answer({"data": listed})
    monkeypatch.setattr(served_generator, "LONG_S", -1.0)
    done = engine.complete(replace(ASKED, prefix=f"{ASKED.prefix}    c = 3\n"))
    assert (done.text, done.trace.model) == (SAID.rstrip(), "qwen2.5-coder")


def test_ids_are_not_sent_to_another_vocabulary(
    opens: Callable[..., Opened], vocabulary: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of the new model is learned from a server that takes any name, after a pause in
    which nobody asked."""
    encode = vocabulary.tokenizer.encode
    shift = 0

    def tokenize(exchange: Exchange) -> None:
        ids = encode(exchange.body["prompt"]).tolist()
        exchange.answer({"tokens": [token + shift for token in ids]})

    routes = {
        "/v1/models": models("vllm", max_model_len=2048),
        "/tokenize": tokenize,
        COMPLETIONS: completion([encode(SAID).tolist()]),
    }
    engine, server = opens(routes, tokenizer=str(bundled(BUNDLED_TARGET)))
    assert engine.complete(ASKED).text == SAID.rstrip()
    monkeypatch.setattr(served_generator, "LONG_S", -1.0)
    assert engine.complete(ASKED).text == SAID.rstrip(), "it has the same still"
    shift = 1
    n_asked = len(server.asked(COMPLETIONS))
    done = engine.complete(replace(ASKED, deadline_ms=5000.0))
    assert done.text == ""
    assert "has another one" in engine.notice
    assert len(server.asked(COMPLETIONS)) == n_asked
