"""A model on an OpenAI-compatible server completes as one in this process does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.errors import ModelError
from codespec.requests import CompletionRequest
from tests.scripted_server import (
    PATIENCE_S,
    Exchange,
    Route,
    ScriptedServer,
    completion,
    endless,
    models,
    scripted_server,
)

BEFORE, AFTER = "def f():\n    fi", "\n\nx = 1\n"
ASKED = CompletionRequest(BEFORE, AFTER, path="/w/a.py", language_id="python", max_tokens=50)

Opened = tuple[LocalEngine, ScriptedServer]
Opens = Callable[..., Opened]


@pytest.fixture
def opens() -> Iterator[Opens]:
    """Opens an engine whose model is on a server that answers so."""
    with ExitStack() as stack:

        def opened(answer: Route, about: Route | None = None, **settings: object) -> Opened:
            routes = {"/v1/models": about or models(), "/v1/completions": answer}
            server = stack.enter_context(scripted_server(routes))
            chosen = {"model": {"target": f"{server.url}/v1", **settings}}
            engine = LocalEngine(load_settings(chosen, env={}))
            return stack.enter_context(closing(engine)), server

        yield opened


def test_its_text_ends_where_the_unit_does(opens: Opens) -> None:
    engine, server = opens(completion(["rst", "()\n", "    second()\n", "third()\n"]))
    done = engine.complete(ASKED)
    assert (done.text, done.finish) == ("rst()", "stop")
    assert (done.trace.model, done.trace.backend) == (
        "qwen2.5-coder",
        "OpenAI-compatible server",
    )
    (body,) = server.asked("/v1/completions")
    assert body["prompt"] == (f"<|fim_prefix|>def f():\n<|fim_suffix|>{AFTER}<|fim_middle|>    fi")
    assert (body["temperature"], body["stream"], body["model"]) == (0, True, "qwen2.5-coder")


def test_the_server_learns_at_once_that_the_unit_has_ended(opens: Opens) -> None:
    engine, server = opens(endless({"choices": [{"text": "rst()\nsecond()\n"}]}))
    assert engine.complete(ASKED).text == "rst()"
    assert server.exchanges[-1].is_gone.wait(PATIENCE_S)


def test_a_cancelled_request_ends_on_the_server(opens: Opens) -> None:
    started = threading.Event()
    engine, server = opens(endless({"choices": [{"text": "r"}]}, started))
    assert engine.complete(ASKED, started.is_set).finish == "cancelled"
    assert server.exchanges[-1].is_gone.wait(PATIENCE_S)


def test_what_came_by_the_deadline_is_kept(opens: Opens) -> None:
    engine, _ = opens(endless({"choices": [{"text": "rst()\n    se"}]}))
    done = engine.complete(replace(ASKED, verbatim=True, deadline_ms=3000.0))
    assert (done.text, done.finish) == ("rst()\n    se", "deadline")


def test_its_limit_ends_the_output(opens: Opens) -> None:
    engine, server = opens(completion(["rst"], "length"))
    done = engine.complete(replace(ASKED, max_tokens=3))
    assert done.finish == "length"
    assert server.asked("/v1/completions")[0]["max_tokens"] == 3


def test_an_answer_that_is_cut_off_before_its_first_text_is_asked_for_again(opens: Opens) -> None:
    engine, server = opens(completion([]))

    def cut(exchange: Exchange) -> None:
        server.routes["/v1/completions"] = completion(["rst()"])
        exchange.cut()

    server.routes["/v1/completions"] = cut
    assert engine.complete(ASKED).text == "rst()"
    assert len(server.asked("/v1/completions")) == 2


def test_a_model_is_named_behind_the_address() -> None:
    with scripted_server({"/v1/models": models(name="one")}) as server:
        target = f"{server.url}#another"
        with pytest.raises(ModelError, match="with the model another"):
            LocalEngine(load_settings({"model": {"target": target}}, env={}))
