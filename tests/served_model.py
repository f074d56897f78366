"""The bundled model behind a server's form: real tokens, made one at a time, over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import numpy as np

from codespec.backends.registry import open_model
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.types import NO_DRAFT
from tests.scripted_server import Exchange, Route, ScriptedServer, models, scripted_server

NAME = "codespec-base"


@dataclass
class ServedModel:
    """A model that decodes greedily for any thread, one request at a time."""

    complete: Callable[[Sequence[int], int], Iterator[int]]
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

        def complete(prompt: Sequence[int], n_most: int) -> Iterator[int]:
            with lock:
                served.n_made.append(0)
                tokens = list(prompt)
                while served.n_made[-1] < n_most:
                    n_reused = target.prefill(np.array(tokens, np.int32), lambda: False)
                    assert n_reused >= 0
                    rest = np.array(tokens[target.n_cached :], np.int32)
                    token = target.decode(rest, NO_DRAFT).argmax(0)
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
        made = model.complete(ids, body["max_tokens"])
        with closing(made):  # type: ignore[arg-type]
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
        made = model.complete(ids, body["n_predict"])
        with closing(made):  # type: ignore[arg-type]
            for token in made:
                text = model.piece(token).decode("utf-8", "replace")
                sent = [token] if body["return_tokens"] else []
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


FORMS = {"vllm": as_vllm, "llama-server": as_llama_server}


@contextmanager
def model_server(model: ServedModel, form: str) -> Generator[ScriptedServer]:
    """A server of this form with the model."""
    with scripted_server(FORMS[form](model)) as server:
        yield server
