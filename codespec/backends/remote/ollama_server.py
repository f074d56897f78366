"""Ollama: text alone, by its native route.

Source: Ollama, docs/api.md.
"""

from __future__ import annotations

from typing import Any

import msgspec

from codespec.backends.remote.inquiry import Inquiry, decoded
from codespec.backends.remote.server_kind import Piece, Served, ServerKind, ServerRequest
from codespec.types import Finish

_MOST_N_CTX = 4096
"""Context that is asked for: a larger one takes the server's memory, and prompts are shorter."""
_FINISH: dict[str, Finish] = {"length": "length"}


class _Tag(msgspec.Struct):
    name: str


class _Tags(msgspec.Struct):
    models: list[_Tag]


class _Version(msgspec.Struct):
    version: str


class _Shown(msgspec.Struct):
    model_info: dict[str, Any] = {}

    def number(self, end: str) -> int:
        """The number whose key ends so; 0 for none."""
        found = (v for k, v in self.model_info.items() if k.endswith(end) and isinstance(v, int))
        return next(found, 0)


class _Response(msgspec.Struct):
    response: str = ""
    done: bool = False
    done_reason: str = ""


class OllamaServer(ServerKind):
    """Ollama."""

    name = "Ollama"
    begins_texts = True

    def served(self, inquiry: Inquiry, model: str) -> Served | None:
        if inquiry.ask("/api/version", _Version) is None:
            return None
        if not model:
            tags = inquiry.ask("/api/tags", _Tags)
            if tags is None or not tags.models:
                return None
            model = tags.models[0].name
        shown = inquiry.ask("/api/show", _Shown, {"model": model})
        if shown is None:
            return None
        named = model if ":" in model else f"{model}:latest"
        n_ctx = shown.number(".context_length") or _MOST_N_CTX
        n_params = shown.number("general.parameter_count")
        return Served(self.name, named, min(n_ctx, _MOST_N_CTX), n_params)

    def request(self, asked: ServerRequest) -> tuple[str, dict[str, Any]]:
        sampling = asked.sampling
        options: dict[str, Any] = {
            "num_predict": 1 if asked.only_reads else asked.max_tokens,
            "num_ctx": asked.n_ctx,
            "temperature": sampling.temperature,
            # Its defaults for these are not ours.
            "repeat_penalty": sampling.repetition_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "presence_penalty": sampling.presence_penalty,
        }
        if sampling.temperature:
            options |= {"top_k": sampling.top_k, "top_p": sampling.top_p, "min_p": sampling.min_p}
            options["seed"] = max(sampling.seed, 0)
        body = {
            "model": asked.model,
            "prompt": asked.prompt,
            "raw": True,
            "stream": True,
            "options": options,
        }
        return "/api/generate", body

    def piece(self, line: bytes) -> Piece | None:
        made = decoded(line, _Response)
        finish = _FINISH.get(made.done_reason, "stop") if made.done else None
        return Piece(made.response, finish=finish)
