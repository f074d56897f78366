"""The bundled model behind a server's form: real tokens, made one at a time, over HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import numpy as np

from codespec.backends.registry import open_model
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.types import NO_DRAFT
from tests.scripted_server import Exchange, Route, ScriptedServer, models, scripted_server

NAME = "qwen2.5-coder-tiny"


Allows = Callable[[bytes, int], bool]
"""True if this token may follow these bytes of an output."""


def _any(said: bytes, token: int) -> bool:
    return True


@dataclass
class ServedModel:
    """A model that decodes greedily for any thread, one request at a time."""

    complete: Callable[[Sequence[int], int, Allows], Generator[int]]
    encode: Callable[[str], list[int]]
    with_markers: Callable[[str], list[int]]
    piece: Callable[[int], bytes]
    end: int
    n_made: list[int] = field(default_factory=list[int])
    """Tokens made for each request."""


@contextmanager
def served_model() -> Generator[ServedModel]:
    """The bundled target."""
    lock = threading.Lock()
    with (
        closing(open_model(bundled(BUNDLED_TARGET))) as model,
        closing(model.context(n_ctx=2048, n_threads=1)) as target,
    ):

        def complete(prompt: Sequence[int], n_most: int, allows: Allows) -> Generator[int]:
            with lock:
                served.n_made.append(0)
                tokens = list(prompt)
                while served.n_made[-1] < n_most:
                    n_reused = target.prefill(np.array(tokens, np.int32), lambda: False)
                    assert n_reused >= 0
                    rest = np.array(tokens[target.n_cached :], np.int32)
                    rows = target.decode(rest, NO_DRAFT)
                    token = rows.argmax(0)
                    said = b"".join(map(model.tokenizer.piece, tokens[len(prompt) :]))
                    if not allows(said, token):
                        likely = np.argsort(rows.row(0))[::-1].tolist()
                        token = next(t for t in likely if allows(said, t))
                    target.keep(())
                    served.n_made[-1] += 1
                    tokens.append(token)
                    yield token
                    if token in model.info.eog:
                        return

        special = model.special_tokens

        def with_markers(text: str) -> list[int]:
            """The tokens of a text whose markers are special tokens, as servers read prompts."""
            if not text:
                return []
            first = min(
                ((at, s) for s in special if (at := text.find(s)) >= 0),
                key=lambda found: (found[0], -len(found[1])),
                default=None,
            )
            if first is None:
                return model.tokenizer.encode(text).tolist()
            at, spelled = first
            before = model.tokenizer.encode(text[:at]).tolist()
            return [*before, special[spelled], *with_markers(text[at + len(spelled) :])]

        served = ServedModel(
            complete,
            lambda text: model.tokenizer.encode(text).tolist(),
            with_markers,
            model.tokenizer.piece,
            min(model.info.eog),
        )
        yield served


def as_vllm(model: ServedModel) -> dict[str, Route]:
    """The routes of vLLM that are asked for."""

    def tokenize(exchange: Exchange) -> None:
        exchange.answer({"tokens": model.encode(exchange.body["prompt"])})

    def complete(exchange: Exchange) -> None:
        body, prompt = exchange.body, exchange.body["prompt"]
        ids = prompt if isinstance(prompt, list) else model.with_markers(prompt)
        exchange.begin()
        allowed = body.get("allowed_token_ids")
        allows = _any if allowed is None else lambda said, token: token in allowed
        with closing(model.complete(ids, body["max_tokens"], allows)) as made:
            for token in made:
                text = model.piece(token).decode("utf-8", "replace")
                choice = {"index": 0, "text": text, "finish_reason": None}
                choice |= {"token_ids": [token]} if body.get("return_token_ids") else {}
                exchange.event({"model": body["model"], "choices": [choice]})
        exchange.event({"choices": [{"index": 0, "text": "", "finish_reason": "length"}]})
        exchange.event("[DONE]")
        exchange.end()

    about = models("vllm", NAME, max_model_len=2048, root="/elsewhere")
    return {"/v1/models": about, "/tokenize": tokenize, "/v1/completions": complete}


def as_llama_server(model: ServedModel) -> dict[str, Route]:
    """The routes of llama-server that are asked for."""

    def tokenize(exchange: Exchange) -> None:
        exchange.answer({"tokens": model.encode(exchange.body["content"])})

    def props(exchange: Exchange) -> None:
        about = {"default_generation_settings": {"n_ctx": 2048}, "model_path": "/elsewhere.gguf"}
        exchange.answer(about)

    def complete(exchange: Exchange) -> None:
        body, prompt = exchange.body, exchange.body["prompt"]
        ids = prompt if isinstance(prompt, list) else model.with_markers(prompt)
        exchange.begin()
        grammar = re.fullmatch(
            r'root ::= "(.*)" \[\^\\x00\]\*', body.get("grammar", 'root ::= "" [^\\x00]*')
        )
        assert grammar is not None
        held = grammar[1].encode().decode("unicode_escape").encode()

        def allows(said: bytes, token: int) -> bool:
            piece = model.piece(token)
            both = said + piece
            return both[: len(held)] == held[: len(both)] and (
                bool(piece) or len(said) >= len(held)
            )

        with closing(model.complete(ids, body["n_predict"], allows)) as made:
            for token in made:
                text = model.piece(token).decode("utf-8", "replace")
                sent = [token] if body.get("return_tokens") else []
                exchange.event({"content": text, "tokens": sent, "stop": False})
        exchange.event({"content": "", "tokens": [], "stop": True, "stop_type": "limit"})
        exchange.end()

    meta = {"n_vocab": 16384, "n_ctx_train": 2048, "n_params": 18_000_000}
    return {
        "/v1/models": models("llamacpp", NAME, meta=meta),
        "/props": props,
        "/tokenize": tokenize,
        "/completion": complete,
    }


def as_ollama(model: ServedModel) -> dict[str, Route]:
    """The routes of Ollama that are asked for."""

    def show(exchange: Exchange) -> None:
        about = {"general.parameter_count": 18_000_000, "qwen2.context_length": 2048}
        exchange.answer({"model_info": about, "capabilities": ["completion", "insert"]})

    def generate(exchange: Exchange) -> None:
        body = exchange.body
        ids = model.with_markers(body["prompt"])
        exchange.begin("application/x-ndjson")
        with closing(model.complete(ids, body["options"]["num_predict"], _any)) as made:
            for token in made:
                text = model.piece(token).decode("utf-8", "replace")
                exchange.piece(json.dumps({"response": text, "done": False}).encode() + b"\n")
        end = {"response": "", "done": True, "done_reason": "length"}
        exchange.piece(json.dumps(end).encode() + b"\n")
        exchange.end()

    return {
        "/v1/models": models("library", f"{NAME}:latest"),
        "/api/version": lambda exchange: exchange.answer({"version": "0.12.3"}),
        "/api/tags": lambda exchange: exchange.answer({"models": [{"name": f"{NAME}:latest"}]}),
        "/api/show": show,
        "/api/generate": generate,
    }


def as_codespec(model: ServedModel) -> dict[str, Route]:
    """The routes of another codespec that are asked for."""
    there = {"workspaces": ["w"]}
    return {
        **as_llama_server(model),
        "/v1/models": models("codespec", NAME),
        "/codespec/workspaces": lambda exchange: exchange.answer(there),
    }


def as_sglang(model: ServedModel) -> dict[str, Route]:
    """The routes of SGLang that are asked for, by its documentation."""
    said = as_vllm(model)
    about = models("sglang", NAME, max_model_len=2048, root="/elsewhere")
    return {"/v1/models": about, "/v1/completions": said["/v1/completions"]}


FORMS = {
    "vllm": as_vllm,
    "llama-server": as_llama_server,
    "codespec": as_codespec,
    "ollama": as_ollama,
    "sglang": as_sglang,
}


@contextmanager
def model_server(model: ServedModel, form: str) -> Generator[ScriptedServer]:
    """A server of this form with the model."""
    with scripted_server(FORMS[form](model)) as server:
        yield server
