"""Ollama's requests, as clients write them, and the form of their answers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from codespec.config import CompletionSettings, Settings, load_settings
from codespec.daemon.wire import StateChanged
from codespec.http.access import Refused
from codespec.http.bodies import ALL_THERE_IS
from codespec.http.dialects.base import Question, Tells
from codespec.http.dialects.ollama_answers import OllamaChat, OllamaGenerate
from codespec.http.dialects.registry import paths_beside, route_of
from codespec.http.field_error import FieldError
from codespec.models.figures import ModelFigures
from codespec.requests import ChatMessage, Completion, CompletionRequest
from codespec.types import Trace


def generate(**fields: object) -> OllamaGenerate:
    return OllamaGenerate(json.dumps({"model": "m:latest", **fields}).encode(), "ours")


def asked(**fields: object) -> CompletionRequest:
    [request] = generate(**fields).requests(CompletionSettings())
    return request


def chat(**fields: object) -> OllamaChat:
    return OllamaChat(json.dumps({"model": "m", **fields}).encode(), "ours")


USER = {"role": "user", "content": "Add two numbers."}
DONE = Trace(model="ours", ms=6.5, first_token_ms=1.5, n_tokens=5, n_repeated=1, n_prompt_tokens=9)


def completion(text: str, finish: Any = "stop") -> Completion:
    return Completion(CompletionRequest("").insertion(text), finish, trace=DONE)


def test_options_are_honoured_wherever_they_stand() -> None:
    options = {
        "num_predict": 9.0,
        "temperature": 0.5,
        "top_k": 40,
        "top_p": 0.9,
        "min_p": None,
        "seed": 7,
        "stop": ["\n\n"],
        "num_ctx": 4096,
        "num_thread": 3,
    }
    request = asked(prompt="x", options=options)
    assert (request.max_tokens, request.stop, request.model) == (9, ("\n\n",), "m")
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.5, 40, 0.9)
    assert (sampling.min_p, sampling.seed, sampling.any_seed) == (0.0, 7, False)
    for no_limit in ({}, {"num_predict": -1}, {"num_predict": -2}, {"num_predict": 0}):
        assert asked(prompt="x", options=no_limit).max_tokens == ALL_THERE_IS


def test_of_options_beyond_their_range_the_nearest_is_meant() -> None:
    """Cody sends such ones."""
    sampling = asked(prompt="x", options={"top_k": -1, "top_p": -1, "temperature": 0.2}).sampling
    assert (sampling.top_k, sampling.temperature) == (0, 0.2)
    assert 0 < sampling.top_p < 1e-6
    sampling = asked(prompt="x", options={"top_p": 2, "min_p": 2, "temperature": -1}).sampling
    assert (sampling.top_p, sampling.min_p, sampling.temperature) == (1.0, 1.0, 0.0)


def test_a_prompt_is_read_as_it_is_meant() -> None:
    filled = asked(prompt="a = ", suffix="\nb", system="Be brief.")
    assert (filled.prefix, filled.suffix, filled.messages, filled.raw) == ("a = ", "\nb", (), False)
    assert asked(prompt="a = ", suffix="\nb", raw=True).suffix == "\nb"
    for raw in (False, True):
        fim = asked(prompt="<|fim_prefix|>a = <|fim_suffix|>\nb<|fim_middle|>", raw=raw)
        assert (fim.prefix, fim.suffix, fim.messages, fim.raw) == ("a = ", "\nb", (), False)
    raw = asked(prompt="<|im_start|>user\n", raw=True)
    assert (raw.prefix, raw.raw, raw.messages) == ("<|im_start|>user\n", True, ())
    said = asked(prompt="Add.")
    assert (said.prefix, said.messages) == ("Add.", (ChatMessage("user", "Add."),))
    assert not said.needs_template
    led = asked(prompt="Add.", system="Be brief.")
    assert led.messages[0] == ChatMessage("system", "Be brief.")
    assert led.needs_template


def test_a_system_that_is_not_read_is_told() -> None:
    both = generate(prompt="a = ", suffix="b", system="Be brief.", stream=False)
    both.requests(CompletionSettings())
    [warning] = both.answer([completion("1")])["warnings"]
    assert "system" in warning


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"template": "{{ .Prompt }}"}, "template"),
        ({"context": [1, 2]}, "context"),
        ({"format": "yaml"}, "format"),
        ({"format": {"type": "string", "pattern": "a+"}}, "format"),
        ({"images": ["aGk="]}, "images"),
        ({"think": "high"}, "think"),
        ({"truncate": False}, "truncate"),
        ({"raw": True, "system": "x"}, "system"),
        ({"options": [1]}, "options"),
        ({"options": {"num_predict": "many"}}, "num_predict"),
        ({"logprobs": True}, "logprobs"),
    ],
)
def test_what_cannot_be_honoured_is_named(fields: dict[str, object], field: str) -> None:
    with pytest.raises(FieldError) as refused:
        generate(prompt="x", **fields)
    assert refused.value.field == field
    assert field in str(refused.value)


def test_a_form_is_asked_for_by_format() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    for form, word in (("json", "object"), (schema, "name")):
        assert word in asked(prompt="x", format=form).sampling.json_schema
        [request] = chat(messages=[USER], format=form).requests(CompletionSettings())
        assert word in request.sampling.json_schema


def test_what_asks_for_nothing_is_taken() -> None:
    nothing = {"template": "", "context": [], "format": "", "images": [], "think": False}
    assert asked(prompt="x", **nothing, keep_alive="5m", shift=True).prefix == "x"
    assert chat(messages=[USER], tools=[], think=None, options=None).streams


def test_chats_are_of_text() -> None:
    [request] = chat(messages=[{"role": "system", "content": "s"}, USER]).requests(
        CompletionSettings()
    )
    assert [message.role for message in request.messages] == ["system", "user"]
    for role in ("system", "developer"):
        asked_for = chat(messages=[{"role": role, "content": "s"}]).requests(CompletionSettings())
        assert asked_for[0].messages == (ChatMessage("system", "s"),)
    assert request.needs_template
    assert request.shortens_chat
    [request] = chat(messages=[USER], truncate=False).requests(CompletionSettings())
    assert not request.shortens_chat
    for field in ("images", "tool_calls"):
        with pytest.raises(FieldError, match=field):
            chat(messages=[{**USER, field: [{}]}])
    with pytest.raises(FieldError, match="tools"):
        chat(messages=[USER], tools=[{"type": "function"}])


def test_an_answer_has_ollamas_form() -> None:
    whole = generate(prompt="x", stream=False)
    assert not whole.streams
    answer = whole.answer([completion("y", "length")])
    assert (answer["response"], answer["done"], answer["done_reason"]) == ("y", True, "length")
    assert answer["model"] == "ours"
    assert answer["created_at"].endswith("Z")
    counts = (answer["prompt_eval_count"], answer["eval_count"])
    durations = (answer["total_duration"], answer["prompt_eval_duration"], answer["eval_duration"])
    assert counts == (9, 4)
    assert durations == (6_500_000, 1_500_000, 5_000_000)

    part, *last = [generate(prompt="x").part("a"), *generate(prompt="x").end("b", completion("ab"))]
    assert isinstance(part, dict)
    assert (part["response"], part["done"]) == ("a", False)
    assert [event["response"] for event in last if isinstance(event, dict)] == ["b", ""]
    assert isinstance(last[1], dict)
    assert (last[1]["done"], last[1]["done_reason"]) == (True, "stop")
    said = chat(messages=[USER]).answer([completion("y")])
    assert said["message"] == {"role": "assistant", "content": "y"}


@pytest.mark.parametrize(
    ("keep_alive", "reason"),
    [(None, "load"), ("5m", "load"), (-1, "load"), (0, "unload"), ("0s", "unload")],
)
def test_a_request_without_a_prompt_is_of_the_model(keep_alive: object, reason: str) -> None:
    for dialect in (generate(keep_alive=keep_alive), chat(messages=[], keep_alive=keep_alive)):
        assert not dialect.streams
        [request] = dialect.requests(CompletionSettings())
        assert request.max_tokens == 1
        answer = dialect.answer([completion("x")])
        assert (answer["done"], answer["done_reason"]) == (True, reason)
        assert "x" not in (answer.get("response"), answer.get("message", {}).get("content"))


def test_errors_have_the_form_of_the_api_that_was_asked() -> None:
    forms = {
        path: route_of(path)[0].error(404, "why", "")
        for path in ("/api/nope", "/v1/nope", "/v1/fim/nope", "/nope")
    }
    assert forms["/api/nope"] == {"error": "why"}
    assert forms["/v1/fim/nope"]["detail"] == forms["/v1/fim/nope"]["message"] == "why"
    for path in ("/v1/nope", "/nope"):
        assert forms[path]["error"]["message"] == "why"
    assert {"/", "/api/chat"} <= {*paths_beside("/api/nope")}
    assert "/v1/completions" not in paths_beside("/api/nope")
    assert {"/v1/completions", "/api/chat"} <= {*paths_beside("/nope")}


@dataclass(frozen=True)
class Server:
    """The parts of a `ServerState` that are asked about models. edits: the next-edit model."""

    figures: ModelFigures
    edits: str
    file: str = "/nowhere/mender.gguf"
    is_busy: bool = False

    @property
    def settings(self) -> Settings:
        return load_settings({"edits": {"model": self.file}}, env={})

    def check_ready(self) -> str:
        return ""

    @property
    def daemon(self) -> StateChanged:
        return StateChanged(state="ready", model="coder", figures=self.figures)

    def models(self) -> list[str]:
        return ["coder", self.edits]


CODER = ModelFigures(
    architecture="qwen2",
    quantisation="Q4_K",
    backend="cuda",
    n_params=1_543_000_000,
    n_ctx=4096,
    n_ctx_trained=32768,
    file_bytes=900_000_000,
    modified_s=1.0,
    fills_in=True,
    fim_prompt="<P>{prefix}<S>{suffix}<M>",
)


def told(path: str, server: Server, **body: object) -> Any:
    return answered(path, server, json.dumps(body).encode() if body else b"")


def answered(path: str, server: Server, raw: bytes = b"", **asked: str) -> Any:
    _, route, _ = route_of(path)
    assert isinstance(route, Tells)
    question = Question(cast("Any", server), raw, asked=asked)
    return asyncio.run(cast("Any", route.answer(question)))


def test_models_are_told_by_ollamas_names() -> None:
    server = Server(CODER, "mender")
    coder, mender = told("/api/tags", server)["models"]
    assert coder["name"] == coder["model"] == "coder:latest"
    assert coder["details"]["parameter_size"] == "1.5B"
    assert coder["details"]["quantization_level"] == "Q4_K"
    assert coder["modified_at"] == "1970-01-01T00:00:01Z"
    assert (mender["name"], mender["size"]) == ("mender:latest", 0)
    assert coder["digest"] != mender["digest"]
    [running] = told("/api/ps", server)["models"]
    assert (running["size_vram"], running["context_length"]) == (900_000_000, 4096)
    for name in ({"model": "coder"}, {"name": "coder:latest"}, {"model": "any:7b"}):
        shown = told("/api/show", server, **name)
        assert shown["capabilities"] == ["completion", "insert"]
        assert shown["model_info"]["qwen2.context_length"] == 4096
        assert "<P>{{ .Prompt }}<S>{{ .Suffix }}<M>" in shown["template"]
    assert told("/api/show", server, model="mender:latest")["capabilities"] == ["completion"]
    assert told("/", server) == told("", server) == "Ollama is running"


def test_a_next_edit_model_has_the_size_of_its_file(tmp_path: Path) -> None:
    for part in ("00001", "00002"):
        (tmp_path / f"mender-{part}-of-00002.gguf").write_bytes(b"GGUF")
    server = Server(CODER, "mender", str(tmp_path / "mender-00001-of-00002.gguf"))
    _, mender = told("/api/tags", server)["models"]
    assert mender["size"] == 8
    assert mender["modified_at"] > "2020"


def test_mistrals_clients_know_what_a_model_can_do() -> None:
    coder, mender = told("/v1/models", Server(CODER, "mender"))["data"]
    assert (coder["type"], coder["max_context_length"]) == ("base", 4096)
    assert coder["capabilities"]["completion_fim"]
    assert not coder["capabilities"]["completion_chat"]
    assert not any(mender["capabilities"].values())


def test_a_busy_slot_is_none_where_that_is_to_fail() -> None:
    [slot] = told("/slots", Server(CODER, "mender", is_busy=True))
    assert slot["is_processing"]
    assert len(answered("/slots", Server(CODER, "mender"), fail_on_no_slot="1")) == 1
    with pytest.raises(Refused, match="no slot available") as refused:
        answered("/slots", Server(CODER, "mender", is_busy=True), fail_on_no_slot="1")
    assert refused.value.status == 503
