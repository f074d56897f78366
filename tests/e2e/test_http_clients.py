"""Exchanges of HTTP clients whose code no registry has: their bodies as sent, and every field of
the answer that their code reads. The file names that code, which was run once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codespec.config import load_settings
from tests.e2e.conftest import Home, until
from tests.http_client import front_of

CLIENTS = json.loads(Path(__file__).with_name("http_clients.json").read_text("utf-8"))
TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "number": (int, float)}


def field(answer: Any, path: str) -> Any:
    if path in answer:  # as llama-server names a field that is asked for within another one
        return answer[path]
    for name in path.split("/"):
        assert name.isdigit() or name in answer, path
        answer = answer[int(name) if name.isdigit() else name]
    return answer


@pytest.mark.parametrize("client", CLIENTS)
def test_every_field_that_a_client_reads_is_there(client: str, home: Home) -> None:
    with front_of(home.path) as front:
        until(lambda: front.ask("/health")[0] == 200)
        for exchange in CLIENTS[client]["exchanges"]:
            path, body = exchange["path"], exchange["body"]
            if body is not None and body.get("stream"):
                answer = front.stream(path, body)[0]
            else:
                status, answer = front.ask(path, body)
                assert status == 200, answer
            for read in exchange["reads"]:
                value = field(answer, read["field"])
                assert isinstance(value, TYPES[read["type"]]), read
                assert not isinstance(value, bool)


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
