"""Check of the next-edit model, which is loaded beside the one that completes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from codespec.backends.registry import in_full, open_vocabulary, targets_of
from codespec.cli.doctor.findings import Finding
from codespec.config import Settings
from codespec.edits.formats.base import NextEditFormat
from codespec.engine.next_edit_model import form_of_model, is_target, memory_needed
from codespec.errors import ConfigError, ModelError
from codespec.models.hardware import free_memory

_AREA = "next edits"


def check(settings: Settings) -> Iterator[Finding]:
    """Findings about the model of `edits.model`; none where there is none."""
    where = settings.edits.model
    if not where:
        return
    try:
        full = in_full(where)
        targets_of(full).try_out(full)
        with closing(open_vocabulary(full)) as model:
            info, form = model.info, form_of_model(model.info, model.special_tokens)
    except (ConfigError, ModelError) as e:
        step = f'{e.hint} Or set edits.model = "".'
        yield Finding(_AREA, "warning", f"edits.model: {e.message}", step)
        return
    if form is None:
        why = f"edits.model: {info.name} is no next-edit model that is known here"
        yield Finding(_AREA, "warning", why, "Choose one: codespec models recommend.")
        return
    size = f"{info.file_bytes / 1e6:.0f} MB, beside the model that completes"
    if is_target(settings):
        size = "it is the model that completes, loaded once"
    yield Finding(_AREA, "ok", f"{info.name}: {form.title}'s format, {size}")
    if not isinstance(form, NextEditFormat):
        why = f"{form.title}'s prompts are answered over HTTP; it is not asked for next edits here"
        yield Finding(_AREA, "note", why, "Choose another one: codespec models recommend.")
    n_needed = memory_needed(settings)
    if n_needed > free_memory():
        why = f"it needs {n_needed / 1e9:.1f} GB, {free_memory() / 1e9:.1f} GB are free"
        yield Finding(_AREA, "warning", why, "Close other programs, or choose a smaller one.")
