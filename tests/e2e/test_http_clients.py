"""Exchanges of HTTP clients whose code the tests do not run, or not everywhere: their bodies as
sent, and every field of the answer that their code reads. The files name that code, and say whether
it was run once."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from codespec.config import load_settings
from tests.e2e.conftest import Home, until
from tests.http_client import Front, events, front_of

CLIENTS: dict[str, Any] = {
    client: about
    for file in ("http_clients.json", "fim_clients.json")
    for client, about in json.loads(Path(__file__).with_name(file).read_text("utf-8")).items()
}
TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "number": (int, float)}


def field(answer: Any, path: str) -> Any:
    if path in answer:  # as llama-server names a field that is asked for within another one
        return answer[path]
    for name in path.split("/"):
        assert name.isdigit() or name in answer, path
        answer = answer[int(name) if name.isdigit() else name]
    return answer


def answers(front: Front, path: str, body: Any) -> list[Any]:
    """The objects of an answer: one, or those of a stream."""
    with closing(front.begin(path, body)) as connection:
        response = connection.getresponse()
        kind, said = response.headers["Content-Type"], response.read()
    assert response.status == 200, (path, said)
    if kind == "text/event-stream":
        return [event for event in events(said) if event != "[DONE]"]
    return [json.loads(line) for line in said.splitlines()]


def test_every_field_that_a_client_reads_is_there(home: Home) -> None:
    with front_of(home.path) as front:
        until(lambda: front.ask("/health")[0] == 200)
        for client, about in CLIENTS.items():
            for exchange in about["exchanges"]:
                found = answers(front, exchange["path"], exchange["body"])
                for read in exchange["reads"]:
                    value = field(found[-1 if read.get("event") == "last" else 0], read["field"])
                    assert isinstance(value, TYPES[read["type"]]), (client, read)
                    assert not isinstance(value, bool), (client, read)


def test_what_llama_vscode_shows_is_true(home: Home) -> None:
    body = {**CLIENTS["llama.vscode"]["exchanges"][0]["body"], "t_max_predict_ms": 60_000}
    with front_of(home.path) as front:
        first, second = (front.ask("/infill", body)[1] for _ in range(2))
    assert first["content"] == second["content"] != ""
    for answer in (first, second):
        settings = answer["generation_settings"]
        assert settings["n_ctx"] == load_settings().model.window(0)
        assert (settings["n_predict"], settings["top_k"], settings["top_p"]) == (128, 40, 0.99)
        timings = answer["timings"]
        assert answer["tokens_cached"] == timings["cache_n"]
        assert timings["prompt_n"] == answer["tokens_evaluated"] - answer["tokens_cached"]
        assert timings["predicted_n"] == answer["tokens_predicted"] > 0
        assert answer["has_new_line"] == ("\n" in answer["content"])
    assert first["tokens_cached"] == 0 < second["tokens_cached"]
