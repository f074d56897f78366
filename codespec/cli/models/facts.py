"""Facts about a model: from its file, and its cost on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from codespec.backends.generators import GeneratorBackend
from codespec.backends.registry import backend_of, targets_of
from codespec.cli import printable
from codespec.config import Settings
from codespec.cost.measure import measure as measure_curve
from codespec.engine.next_edit_model import form_of_model
from codespec.types import FimTokens


def describe(where: str, settings: Settings, *, measure: bool) -> dict[str, Any]:
    """Facts by name; None for one that the file does not state. memory_bytes: weights, and the KV
    cache at the window in use; the process adds some 100 MB. measure: time the model, for
    tok_per_s.

    Raises: ModelError if the file cannot be loaded.
    """
    backend = backend_of(where)
    if isinstance(backend, GeneratorBackend):
        return _of_generator(backend, where, settings)
    backend = targets_of(where)
    with closing(backend.open(where, n_gpu_layers=settings.model.n_gpu_layers)) as model:
        info = model.info
        n_ctx, kv_type = model.window(settings.model.window(info.n_ctx)), settings.model.kv_type
        fim, texts = info.fim, model.token_texts()
        form = form_of_model(info, model.special_tokens)
        facts: dict[str, Any] = {
            "name": info.name,
            "path": where,
            "architecture": info.architecture,
            "parameters": info.n_params,
            "quantisation": (model.description.split() or [None])[-1],
            "bytes": info.file_bytes,
            "licence": model.metadata("general.license") or None,
            "context": info.n_ctx,
            "vocabulary": info.n_vocab,
            "tokenizer": model.metadata("tokenizer.ggml.pre") or None,
            "fim_order": fim.order if fim else None,
            "fim_tokens": [texts[t] for t in fim.markers] if fim else None,
            "other_files": _other_files(fim, texts),
            "next_edits": form.title if form else None,
            "drafts_for_itself": backend.has_mtp_head(where),
            "memory_bytes": info.file_bytes + n_ctx * model.kv_bytes_a_token(kv_type),
            "tok_per_s": None,
        }
        if measure:
            n_threads = settings.model.n_threads
            target = model.context(n_ctx=n_ctx, n_threads=n_threads, kv_type=kv_type)
            with closing(target):
                facts["tok_per_s"] = round(1e3 / measure_curve(target).points[1], 1)
        return facts


def _of_generator(backend: GeneratorBackend, where: str, settings: Settings) -> dict[str, Any]:
    with closing(backend.open(where, settings)) as generator:
        info, n_units = generator.info, generator.n_units
    return {
        "name": info.name,
        "path": where,
        "backend": backend.name,
        "parameters": info.n_params or None,
        "context": info.n_ctx // n_units,
        "fim_order": info.fim.order if info.fim else None,
        "decodes_by_itself": True,
    }


def in_words(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, value) of each fact, for people."""
    for key, value in facts.items():
        name = {"bytes": "file", "memory_bytes": "memory needed", "tok_per_s": "tokens a second"}
        if value is None:
            text = "-"
        elif key.endswith("bytes"):
            text = f"{value / 1e6:,.1f} MB"
        elif isinstance(value, bool):
            text = "yes" if value else "no"
        elif isinstance(value, list):
            text = printable(" ".join(value))
        else:
            text = f"{value:,}" if isinstance(value, int | float) else str(value)
        yield name.get(key, key.replace("_", " ")), text


def _other_files(fim: FimTokens | None, texts: Sequence[str]) -> str:
    """Tokens that precede each of the other files in a prompt."""
    files = fim.files if fim else None
    if files is None:
        return "as comments"
    markers = [texts[t] for t in (files.repository, files.file) if t >= 0]
    return printable(" ".join(markers)) or f"{files.heading}PATH"
