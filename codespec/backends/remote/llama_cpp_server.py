"""llama.cpp's own server: ids both ways, by its native route.

Source: llama.cpp, tools/server/README.md.
"""

from __future__ import annotations

from typing import Any

import msgspec

from codespec.backends.remote.inquiry import Inquiry, data_of, decoded
from codespec.backends.remote.server_kind import Piece, Served, ServerKind, ServerRequest
from codespec.types import Finish

_FINISH: dict[str, Finish] = {"limit": "length"}


class _Meta(msgspec.Struct):
    n_vocab: int = 0
    n_ctx: int = 0
    n_ctx_train: int = 0
    n_params: int = 0


class _LlamaModel(msgspec.Struct):
    id: str
    owned_by: str = ""
    meta: _Meta | None = None


class _LlamaModels(msgspec.Struct):
    data: list[_LlamaModel]


class _Generation(msgspec.Struct):
    n_ctx: int = 0


class _Props(msgspec.Struct):
    default_generation_settings: _Generation = msgspec.field(default_factory=_Generation)
    model_path: str = ""


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Made(msgspec.Struct):
    content: str = ""
    tokens: list[int] = []
    stop: bool = False
    stop_type: str = ""


def _beginning(text: str) -> str:
    """The grammar of all texts that begin with this one."""
    escaped = "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08X}" for c in text)
    return f'root ::= "{escaped}" [^\\x00]*'


class LlamaCppServer(ServerKind):
    """llama-server."""

    name = "llama-server"
    owner = "llamacpp"
    hold_texts = True

    def served(self, inquiry: Inquiry, model: str) -> Served | None:
        models = inquiry.ask("/v1/models", _LlamaModels)
        found = next((m for m in models.data if model in ("", m.id)), None) if models else None
        if found is None or found.owned_by != self.owner:
            return None
        props = inquiry.ask("/props", _Props) or _Props()
        meta = found.meta or _Meta()
        return Served(
            self.name,
            found.id,
            n_ctx=props.default_generation_settings.n_ctx or meta.n_ctx or meta.n_ctx_train,
            n_params=meta.n_params,
            n_vocab=meta.n_vocab,
            takes_ids=True,
            files=(props.model_path,) if props.model_path else (),
        )

    def tokens(self, inquiry: Inquiry, model: str, text: str) -> list[int] | None:
        body = {"content": text, "add_special": False, "parse_special": False, "model": model}
        said = inquiry.ask("/tokenize", _Tokens, body)
        return None if said is None else said.tokens

    def request(self, asked: ServerRequest) -> tuple[str, dict[str, Any]]:
        sampling = asked.sampling
        fields: dict[str, Any] = {"temperature": sampling.temperature}
        if sampling.temperature:
            # Its defaults for these are not ours.
            fields |= {"top_k": sampling.top_k, "top_p": sampling.top_p, "min_p": sampling.min_p}
            fields["seed"] = max(sampling.seed, 0)
        fields["repeat_penalty"] = sampling.repetition_penalty
        fields["frequency_penalty"] = sampling.frequency_penalty
        fields["presence_penalty"] = sampling.presence_penalty
        body: dict[str, Any] = {
            "model": asked.model,
            "prompt": asked.prompt,
            "n_predict": 0 if asked.only_reads else asked.max_tokens,
            "stream": True,
            "cache_prompt": True,
            "return_tokens": isinstance(asked.prompt, list),
            **fields,
        }
        return "/completion", {**body, "grammar": _beginning(asked.held)} if asked.held else body

    def piece(self, line: bytes) -> Piece | None:
        data = data_of(line)
        if data is None:
            return None
        if data == b"[DONE]":
            return Piece(finish="stop")
        made = decoded(data, _Made)
        finish = _FINISH.get(made.stop_type, "stop") if made.stop else None
        return Piece(made.content, tuple(made.tokens), finish)
