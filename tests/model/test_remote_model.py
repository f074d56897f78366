"""The bundled model behind a server says what it says in this process, in ids and in text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.errors import ModelError
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest, Progress
from tests.scripted_server import PATIENCE_S, ScriptedServer, completion
from tests.served_model import FORMS, ServedModel, model_server, served_model

VOCABULARY = str(bundled(BUNDLED_TARGET))
ROUTES = ("/v1/completions", "/completion", "/api/generate")
IN_IDS = ("vllm", "llama-server", "codespec")
SOURCE = '''import json
from pathlib import Path


def read_settings(path: Path) -> dict[str, object]:
    """The settings in a file."""
    with path.open() as file:
        settings = json.load(file)
    if not isinstance(settings, dict):
        raise ValueError(f"{path}: no table")
    return settings


def write_settings(path: Path, settings: dict[str, object]) -> None:
    with path.open("w") as file:
        json.dump(settings, file)
'''
PLACES = [SOURCE.index(said) + len(said) for said in (
    "    with path", "settings = ", "    if not ", "        raise Val", "return s", "open(\"w\") ",
    "json.du", "def write_", "import json\nfr",
)]  # fmt: skip


@pytest.fixture(scope="module")
def served() -> Iterator[ServedModel]:
    with served_model() as model:
        yield model


def asked(at: int, path: str = "/w/a.py") -> CompletionRequest:
    return CompletionRequest(
        SOURCE[:at], SOURCE[at:], path=path, language_id="python", max_tokens=32, verbatim=True
    )


def engine_on(server: ScriptedServer, **settings: object) -> LocalEngine:
    chosen = {"model": {"target": server.url}, "server": settings}
    engine = LocalEngine(load_settings(chosen, env={}))
    engine.remembers = False
    return engine


@pytest.fixture(scope="module")
def local_texts() -> list[str]:
    with closing(LocalEngine(load_settings({"model": {"draft": ""}}, env={}))) as engine:
        engine.remembers = False
        return [engine.complete(asked(at)).text for at in PLACES]


def ids_of(server: ScriptedServer) -> list[Any]:
    """The prompts of the server's requests for a continuation."""
    return [e.body["prompt"] for e in server.exchanges if e.path in ROUTES]


@pytest.mark.parametrize("form", FORMS)
def test_it_says_what_it_says_here(form: str, served: ServedModel, local_texts: list[str]) -> None:
    with (
        model_server(served, form) as server,
        closing(engine_on(server, tokenizer=VOCABULARY)) as engine,
    ):
        said = [engine.complete(asked(at)).text for at in PLACES]
        # The last one is asked for again, and only some can hold their output to a beginning.
        n = len(PLACES) - (form not in IN_IDS)
        assert said[:n] == local_texts[:n]
        kind = list if form in IN_IDS else str
        assert {type(prompt) for prompt in ids_of(server)} == {kind}
        assert engine.info.n_ctx == 2048


@pytest.mark.parametrize("form", ["vllm", "llama-server"])
def test_a_text_that_spells_a_marker_is_no_marker_to_it(form: str, served: ServedModel) -> None:
    marker = "<|fim_middle|>"
    request = replace(asked(PLACES[0]), prefix=f'X = "{marker}"\n{SOURCE[: PLACES[0]]}')
    markers = served.with_markers(marker)
    with model_server(served, form) as server:
        with closing(engine_on(server, tokenizer=VOCABULARY)) as engine:
            in_ids = engine.complete(request)
        with closing(engine_on(server)) as engine:
            in_text = engine.complete(request)
        *_, ids, text = ids_of(server)
    assert ids.count(markers[0]) == 1
    assert isinstance(text, str)
    assert text.count(marker) == 1
    assert served.with_markers(text).count(markers[0]) == 1
    assert in_ids.text
    assert in_text.text


def test_a_vocabulary_of_another_model_is_refused(served: ServedModel) -> None:
    with (
        model_server(replace(served, encode=lambda text: [1, 2, 3]), "vllm") as server,
        pytest.raises(ModelError, match="has another one"),
    ):
        engine_on(server, tokenizer=VOCABULARY)


def test_a_server_here_that_names_its_file_needs_no_setting(served: ServedModel) -> None:
    with model_server(served, "llama-server") as server:
        about = {"default_generation_settings": {"n_ctx": 1024}, "model_path": VOCABULARY}
        server.routes["/props"] = lambda exchange: exchange.answer(about)
        with closing(engine_on(server)) as engine:
            assert engine.info.n_ctx == 1024
            assert engine.complete(asked(PLACES[0])).text
        assert isinstance(ids_of(server)[-1], list)


def test_a_place_ahead_is_read_and_nothing_more(served: ServedModel) -> None:
    with (
        model_server(served, "vllm") as server,
        closing(engine_on(server, tokenizer=VOCABULARY)) as engine,
    ):
        n_before = len(served.n_made)
        for _ in engine.prefetching(asked(PLACES[1])):
            pass
        assert served.n_made[n_before:] == [1]
        read = ids_of(server)[-1]
        engine.complete(asked(PLACES[1]))
        assert ids_of(server)[-1] == read


def test_a_request_that_nobody_waits_for_ends_on_the_server(served: ServedModel) -> None:
    with (
        model_server(served, "vllm") as server,
        closing(engine_on(server, tokenizer=VOCABULARY)) as engine,
    ):
        n_before, told = len(served.n_made), list[Progress]()
        request = replace(asked(PLACES[0]), max_tokens=1800)
        done = engine.complete(request, lambda: bool(told), told.append)
        assert done.finish == "cancelled"
        assert done.text.startswith(told[0].text)
        until = time.monotonic() + PATIENCE_S
        while server.n_answering and time.monotonic() < until:
            time.sleep(0.01)
        assert served.n_made[n_before] < 1800


def test_another_codespec_learns_the_place_in_its_own_workspace(served: ServedModel) -> None:
    with (
        model_server(served, "codespec") as server,
        closing(engine_on(server, tokenizer=VOCABULARY)) as engine,
    ):
        engine.complete(replace(asked(PLACES[0], "/home/me/w/a/b.py"), workspace="/home/me/w"))
        engine.complete(replace(asked(PLACES[0], "/home/me/v/b.py"), workspace="/home/me/v"))
        bodies = [e.body for e in server.exchanges if e.path in ROUTES]
    assert {(body["workspace"], body.get("path")) for body in bodies} == {
        ("w", "a/b.py"),
        ("", None),
    }


def test_typed_along_it_answers_as_here(served: ServedModel) -> None:
    """The session of somebody who types what is suggested, letter by letter."""
    with (
        model_server(served, "vllm") as server,
        closing(engine_on(server, tokenizer=VOCABULARY)) as engine,
        closing(LocalEngine(load_settings({"model": {"draft": ""}}, env={}))) as local,
    ):
        requests = [replace(asked(at), suffix="\n", verbatim=False) for at in PLACES]
        texts = [local.complete(request).text for request in requests]
        request, text = max(zip(requests, texts, strict=True), key=lambda found: len(found[1]))
        assert len(text) > 5
        for n in range(min(len(text), 12)):
            typed = replace(request, prefix=request.prefix + text[:n])
            assert engine.complete(typed).text == local.complete(typed).text


def test_a_server_that_ignores_what_a_token_may_be_is_not_asked_without_end(
    served: ServedModel,
) -> None:
    with (
        model_server(served, "vllm") as server,
        closing(engine_on(server, tokenizer=VOCABULARY)) as engine,
    ):
        server.routes["/v1/completions"] = completion([[served.end]])
        with pytest.raises(ModelError, match="ids that it was not given"):
            engine.complete(asked(SOURCE.index("import json\nfr") + 14))
        assert len(ids_of(server)) == 2
