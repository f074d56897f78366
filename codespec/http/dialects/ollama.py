"""Ollama's API: completions, chats, and what its clients ask about models.

Source: Ollama, docs/api.md, and api/types.go for the fields of its answers.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress

import msgspec

from codespec.errors import CodespecError
from codespec.http.bodies import LATEST, fields_of
from codespec.http.dialects.base import Api, Json, Question, Tells, Writes
from codespec.http.dialects.ollama_answers import OllamaChat, OllamaGenerate, time_of
from codespec.http.dialects.ollama_bodies import ShowBody
from codespec.models.figures import ModelFigures
from codespec.models.resolve import model_file
from codespec.models.split import size_of

_VERSION = "0.33.0"
"""The version of Ollama whose API this is: clients ask for one that is new enough."""
_ALIVE = "Ollama is running"
"""The text by which clients and scripts know that Ollama's API is served."""
_NEVER = "9999-12-31T23:59:59Z"
_UNITS = (("B", 1e9), ("M", 1e6), ("K", 1e3))


async def _root(question: Question) -> str:
    return _ALIVE


async def _version(question: Question) -> Json:
    return {"version": _VERSION}


async def _tags(question: Question) -> Json:
    return {"models": [_row(name, question) for name in question.server.models()]}


async def _running(question: Question) -> Json:
    """The models that complete: the next-edit model is loaded when it is asked for."""
    name, figures = question.server.models()[0], question.server.daemon.figures
    row = _row(name, question)
    del row["modified_at"]
    in_gpu = 0 if figures.backend == "cpu" else figures.file_bytes
    about = {"expires_at": _NEVER, "size_vram": in_gpu, "context_length": figures.n_ctx}
    return {"models": [{**row, **about}]}


async def _show(question: Question) -> Json:
    """The model of that name, or the one that answers in its place."""
    body = await asyncio.to_thread(fields_of, question.body, ShowBody)  # it may be long
    names = question.server.models()
    asked = (body.model or body.name).removesuffix(LATEST)
    figures = _figures_of(asked if asked in names else names[0], question)
    length = {f"{figures.architecture}.context_length": figures.n_ctx} if figures.n_ctx else {}
    return {
        "parameters": f"num_ctx {figures.n_ctx}" if figures.n_ctx else "",
        "template": _template(figures),
        "details": _details(figures),
        "model_info": {
            "general.architecture": figures.architecture,
            "general.parameter_count": figures.n_params,
            **length,  # as long as prompts may be here
        },
        "capabilities": ["completion", *(["insert"] if figures.fills_in else [])],
        "modified_at": time_of(figures.modified_s),
    }


def _row(name: str, question: Question) -> Json:
    """A model in a list."""
    figures = _figures_of(name, question)
    named = name if ":" in name else f"{name}{LATEST}"
    about = msgspec.json.encode({"name": named, "figures": figures})
    return {
        "name": named,
        "model": named,
        "modified_at": time_of(figures.modified_s),
        "size": figures.file_bytes,
        "digest": hashlib.sha256(about).hexdigest(),  # of what is known, as Ollama's
        "details": _details(figures),
    }


def _figures_of(name: str, question: Question) -> ModelFigures:
    """Figures of one of the models; of the next-edit model those of its file are known here."""
    server = question.server
    if name == server.daemon.model:
        return server.daemon.figures
    with suppress(OSError, CodespecError):  # elsewhere, or gone
        file = model_file(server.settings.edits.model)
        return ModelFigures(file_bytes=size_of(file), modified_s=file.stat().st_mtime)
    return ModelFigures()


def _details(figures: ModelFigures) -> Json:
    family = figures.architecture
    size = next((f"{figures.n_params / n:.1f}{u}" for u, n in _UNITS if figures.n_params >= n), "")
    return {
        "parent_model": "",
        "format": "gguf" if family else "",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": size,
        "quantization_level": figures.quantisation,
    }


def _template(figures: ModelFigures) -> str:
    """The model's prompts as Ollama would write them down: clients look for a suffix in it."""
    if not figures.fills_in:
        return "{{ .Prompt }}"
    prompt = figures.fim_prompt or "{prefix}{suffix}"
    named = prompt.replace("{prefix}", "{{ .Prompt }}").replace("{suffix}", "{{ .Suffix }}")
    return f"{{{{- if .Suffix }}}}{named}{{{{- else }}}}{{{{ .Prompt }}}}{{{{- end }}}}"


def _error(status: int, message: str, field: str) -> Json:
    return {"error": message}


def _line(event: bytes) -> bytes:
    return event + b"\n"


API = Api(
    routes={
        "": Tells(_root, is_public=True),
        "/api/generate": Writes(OllamaGenerate),
        "/api/chat": Writes(OllamaChat),
        "/api/tags": Tells(_tags),
        "/api/ps": Tells(_running),
        "/api/show": Tells(_show, method="POST"),
        "/api/version": Tells(_version),
    },
    error=_error,
    prefixes=("/api/",),
    stream_type="application/x-ndjson",
    framed=_line,
)
