"""Servers of OpenAI's completions: vLLM, SGLang, and those that are no more than compatible.

Sources: OpenAI, API reference, "Completions (legacy)"; vLLM, "OpenAI-compatible server", with its
extra parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codespec.backends.remote.inquiry import Inquiry, data_of, decoded
from codespec.backends.remote.server_kind import Piece, Served, ServerKind, ServerRequest
from codespec.backends.remote.server_session import session_headers
from codespec.types import Finish, SamplingParams

ROUTE = "/v1/completions"
_FINISH: dict[str, Finish] = {"stop": "stop", "length": "length"}


class _ServedModel(msgspec.Struct):
    id: str
    owned_by: str = ""
    root: str | None = None
    max_model_len: int | None = None


class ServedModels(msgspec.Struct):
    """The answer of /v1/models."""

    data: list[_ServedModel]

    def named(self, model: str) -> _ServedModel | None:
        """The model of this name; "": the first."""
        return next((m for m in self.data if model in ("", m.id)), None)


class _Tokenized(msgspec.Struct):
    tokens: list[int]


class _Choice(msgspec.Struct):
    index: int = 0
    text: str | None = ""
    token_ids: list[int] | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []


def sampling_fields(sampling: SamplingParams) -> dict[str, Any]:
    """The fields of a request that are not as by default, those of vLLM included."""
    fields: dict[str, Any] = {"temperature": sampling.temperature}
    if sampling.temperature:
        fields |= {"top_p": sampling.top_p, "seed": max(sampling.seed, 0)}
        fields |= {"top_k": sampling.top_k} if sampling.top_k else {}
        fields |= {"min_p": sampling.min_p} if sampling.min_p else {}
    for name in ("frequency_penalty", "presence_penalty"):
        fields |= {name: value} if (value := getattr(sampling, name)) else {}
    if sampling.repetition_penalty != 1:
        fields["repetition_penalty"] = sampling.repetition_penalty
    return fields


class OpenAIServer(ServerKind):
    """A server of which no more is known than that it is compatible: text alone."""

    name = "OpenAI-compatible server"
    takes_ids = False
    owners: tuple[str, ...] = ()
    """Owners of models, as such a server writes: its models' owner; (): any."""

    def served(self, inquiry: Inquiry, model: str) -> Served | None:
        models = inquiry.ask("/v1/models", ServedModels)
        found = models.named(model) if models is not None else None
        if found is None or (self.owners and found.owned_by not in self.owners):
            return None
        return Served(
            self.name,
            found.id,
            n_ctx=found.max_model_len or 0,
            takes_ids=self.takes_ids,
            files=(found.root,) if found.root else (),
        )

    def request(self, asked: ServerRequest) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {
            "model": asked.model,
            "prompt": asked.prompt,
            "max_tokens": 1 if asked.only_reads else asked.max_tokens,
            "stream": True,
            **sampling_fields(asked.sampling),
        }
        return ROUTE, body

    def piece(self, line: bytes) -> Piece | None:
        data = data_of(line)
        if data is None:
            return None
        if data == b"[DONE]":
            return Piece(finish="stop")
        choices = decoded(data, _Chunk).choices
        said = next((choice for choice in choices if not choice.index), None)
        if said is None:
            return None
        finish = None if said.finish_reason is None else _FINISH.get(said.finish_reason, "stop")
        return Piece(said.text or "", tuple(said.token_ids or ()), finish)


class VllmServer(OpenAIServer):
    """vLLM, which takes and gives token ids."""

    name = "vLLM"
    hold_tokens = True
    takes_ids = True
    owners = ("vllm",)

    def tokens(self, inquiry: Inquiry, model: str, text: str) -> list[int] | None:
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        said = inquiry.ask("/tokenize", _Tokenized, body)
        return None if said is None else said.tokens

    def request(self, asked: ServerRequest) -> tuple[str, dict[str, Any]]:
        route, body = super().request(asked)
        # The markers of a prompt in text are special tokens already.
        special = {} if isinstance(asked.prompt, list) else {"add_special_tokens": False}
        allowed = {"allowed_token_ids": asked.allowed} if asked.allowed else {}
        gives_ids = isinstance(asked.prompt, list)
        return route, {**body, **special, **allowed, "return_token_ids": gives_ids}

    def headers(self, asked: ServerRequest) -> Mapping[str, str]:
        return session_headers(asked.workspace)


class SglangServer(OpenAIServer):
    """SGLang, by its documentation; it was not run."""

    name = "SGLang"
    owners = ("sglang",)
