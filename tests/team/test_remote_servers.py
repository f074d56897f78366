"""The bundled model on real servers says what it says in this process."""

from __future__ import annotations

import json
import time
import urllib.request
from contextlib import closing
from dataclasses import replace

import pytest

from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.requests import CompletionRequest, Progress
from tests.model.test_remote_model import PLACES, asked

from .conftest import MODEL


def engine_on(target: str) -> LocalEngine:
    chosen = {"model": {"target": target}, "server": {"tokenizer": str(MODEL)}}
    engine = LocalEngine(load_settings(chosen, env={}))
    engine.remembers = False
    return engine


def texts(engine: LocalEngine) -> list[str]:
    requests: list[CompletionRequest] = []
    for at in PLACES:
        requests += asked(at), replace(asked(at), suffix="\n", verbatim=False)
    return [engine.complete(request).text for request in requests]


@pytest.fixture(scope="module")
def here() -> list[str]:
    """Texts of the model in this process."""
    with closing(LocalEngine(load_settings({"model": {"draft": ""}}, env={}))) as engine:
        engine.remembers = False
        return texts(engine)


def test_llama_server_says_what_is_said_here(llama: str, here: list[str]) -> None:
    with closing(engine_on(llama)) as engine:
        assert engine.info.backend == "llama-server"
        assert texts(engine) == here


def test_llama_server_stops_when_nobody_waits(llama: str) -> None:
    def is_at_work() -> bool:
        with urllib.request.urlopen(f"{llama}/slots") as answer:
            return any(slot["is_processing"] for slot in json.load(answer))

    told = list[Progress]()
    with closing(engine_on(llama)) as engine:
        request = replace(asked(PLACES[0]), max_tokens=1500)
        done = engine.complete(request, lambda: bool(told), told.append)
        assert done.finish == "cancelled"
        until = time.monotonic() + 60
        while is_at_work():
            assert time.monotonic() < until
            time.sleep(0.01)
        assert engine.complete(replace(request, max_tokens=4)).text


def test_vllm_says_what_is_said_here_but_for_near_ties(port: int, here: list[str]) -> None:
    """vLLM computes in 32 bits where the file has 8: where two tokens are all but equally likely,
    the texts part."""
    with closing(engine_on(f"http://127.0.0.1:{port}/v1")) as engine:
        assert engine.info.backend == "vLLM"
        said = texts(engine)
    assert sum(a == b for a, b in zip(said, here, strict=True)) >= 0.7 * len(here)
