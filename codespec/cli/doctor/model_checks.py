"""Check of the model: its file, its memory, its speed, and what that means for suggestions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from statistics import median

import numpy as np
import psutil

from codespec.backends.base import Model, Target, non_finite_logits
from codespec.backends.generators import GeneratorBackend
from codespec.backends.registry import backend_of, target_of, targets_of
from codespec.cli.doctor import server_checks
from codespec.cli.doctor.findings import Finding
from codespec.cli.doctor.verdicts import LINE_TOKENS, in_time, kind
from codespec.config import Settings
from codespec.drafters.registry import check as check_drafters
from codespec.engine.draft_models import check_draft
from codespec.engine.reading import readable, whole
from codespec.errors import ConfigError, ModelError
from codespec.models import library
from codespec.models.resolve import TIMES_DEARER, draft_paths
from codespec.types import NO_DRAFT, ModelInfo, Tokens

NEW_PROMPT_TOKENS = 64
"""Tokens of the prompt read anew for a suggestion while typing: the rest is in the KV cache."""
_N_PREFILL, _N_STEPS = 384, 16
_BUSY = 0.25
"""Share of the processors from which on other programs' use is reported."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of the model, in milliseconds. prompt_ms: to read a token of the prompt; pass_ms: a
    pass that decodes one token. others: share of the processors that other programs had
    meanwhile."""

    prompt_ms: float
    pass_ms: float
    others: float = 0.0

    @property
    def line_ms(self) -> float:
        """Milliseconds for one line while typing, without drafts."""
        return NEW_PROMPT_TOKENS * self.prompt_ms + LINE_TOKENS * self.pass_ms

    def cold_ms(self, n_prompt: int) -> float:
        """Milliseconds for one line in a document that was just opened, with a prompt of so many
        tokens."""
        return n_prompt * self.prompt_ms + LINE_TOKENS * self.pass_ms


def check(settings: Settings, *, measure: bool) -> tuple[list[Finding], str]:
    """(findings, hash of the tokenizer or ""). measure: time the model, too."""
    found = list(_list())
    try:
        where = target_of(settings.model)
        backend = backend_of(where)
        backend.try_out(where)
        if isinstance(backend, GeneratorBackend):
            of_server, tokenizer = server_checks.check(backend, where, settings, measure=measure)
            return [*found, *of_server], tokenizer
        backend = targets_of(where)
        vocabulary = backend.open(where, vocab_only=True)
    except (ConfigError, ModelError) as e:
        return [*found, Finding("model", "error", e.message, e.hint)], ""
    info = vocabulary.info
    vocabulary.close()
    size = f"{info.n_params / 1e6:.1f} M parameters, " if info.n_params else ""
    found.append(
        Finding("model", "ok", f"{info.name}: {size}{info.file_bytes / 1e6:.0f} MB, {info.path}")
    )
    found += kind(info.name, info.fim is not None)
    remarks = backend.remarks_on(where, settings.model.kv_type)
    found += (Finding("model", *remark) for remark in remarks)
    try:
        backend.check_fits(where)
    except ModelError as e:
        return [*found, Finding("model", "error", e.message, e.hint)], info.tokenizer_hash
    found += _draft(settings, info)
    if measure:
        found += _measured(settings)
    return found, info.tokenizer_hash


def _list() -> Iterator[Finding]:
    try:
        library.read_list()
    except ConfigError as e:
        yield Finding("model", "warning", e.message, e.hint)


def _draft(settings: Settings, info: ModelInfo) -> Iterator[Finding]:
    """Findings on draft models: with one that cannot be used, or an unknown drafter, no engine
    starts."""
    try:
        check_drafters(settings.drafting.drafters)
        if "model" not in settings.drafting.drafters:
            return
        target = target_of(settings.model)
        backend = targets_of(target)
        if settings.may_draft_itself and backend.has_mtp_head(target):
            says = "its MTP head drafts for it"
            yield Finding("model", "ok", f"{says}, where nothing was distilled for a workspace")
            return
        when = ""
        for path in draft_paths(settings.model, info.file_bytes):
            targets_of(path).try_out(str(path))
            by_ids = check_draft(target, path)
            how = "in its own tokens" if by_ids else "by its text, as its tokens are others"
            yield Finding("model", "ok", f"{path.stem} drafts for it{when}, {how}")
            when = f" instead where a pass of it takes {TIMES_DEARER} of those"
    except (ConfigError, ModelError) as e:
        yield Finding("model", "error", e.message, e.hint)


def _measured(settings: Settings) -> Iterator[Finding]:
    try:
        speed, backend = measure_speed(settings)
    except ModelError as e:
        yield Finding("model", "error", e.message, e.hint)
        return
    meanwhile, instead = "", None
    if speed.others >= _BUSY:
        meanwhile = f", while other programs had {speed.others:.0%} of the processors"
        instead = "It is quicker where other programs leave it the processors: ask again then."
    yield Finding(
        "model",
        "ok",
        f"on {backend}: {speed.prompt_ms:.2f} ms a token of the prompt, {speed.pass_ms:.1f} ms a "
        f"pass of one token{meanwhile}",
    )
    everything = whole(settings)
    shown = readable(everything, speed.prompt_ms, settings.completion.max_read_ms)
    if shown != everything:
        yield Finding(
            "model",
            "note",
            f"it reads slowly: {shown.n_tokens} tokens of a file are shown to it instead of "
            f"{everything.n_tokens}",
            instead
            or "A smaller model sees more; completion.max_read_ms says how long reading may take.",
        )
    cold = speed.cold_ms(shown.n_tokens)
    meaning = (
        f"a line takes about {speed.line_ms:.0f} ms while typing, {cold:.0f} ms in a file just "
        "opened, less where drafts are right"
    )
    yield in_time(settings.completion, speed.line_ms, cold, meaning, instead)


def measure_speed(settings: Settings) -> tuple[Speed, str]:
    """(speed, backend). Takes some seconds with a large model. Raises: ModelError."""
    chosen = settings.model
    where = target_of(chosen)
    with closing(targets_of(where).open(where, n_gpu_layers=chosen.n_gpu_layers)) as model:
        n_ctx = min(1024, model.info.n_ctx or 1024)
        target = model.context(n_ctx=n_ctx, n_threads=chosen.n_threads, kv_type=chosen.kv_type)
        with closing(target):
            return _speed_of(target, model), model.info.backend


def _speed_of(target: Target, model: Model) -> Speed:
    tokens = _some_text(model, min(_N_PREFILL, target.info.n_ctx // 2))
    # The first pass of a context takes longer than those after it.
    target.prefill(tokens[:32], lambda: False)
    target.decode(tokens[target.n_cached : 32], NO_DRAFT)
    target.keep([])
    committed, passes = tokens, list[float]()
    n_read = target.n_cached
    psutil.cpu_percent()  # since here
    own_s, began = time.process_time(), time.perf_counter()
    started = began
    target.prefill(tokens, lambda: False)
    for _ in range(1 + _N_STEPS):
        rows = target.decode(committed[target.n_cached :], NO_DRAFT)
        said = rows.argmax(0)
        if not np.isfinite(rows.row(0).max()):
            raise non_finite_logits(model.info)
        target.keep([])
        passes.append((time.perf_counter() - started) * 1e3)
        committed = np.append(committed, np.int32(said))
        started = time.perf_counter()
    own = (time.process_time() - own_s) / (time.perf_counter() - began) / (os.cpu_count() or 1)
    others = max(psutil.cpu_percent() / 100 - own, 0.0)
    # The first one read the prompt.
    return Speed(passes[0] / (len(tokens) - n_read), median(passes[1:]), others)


def _some_text(model: Model, n_tokens: int) -> Tokens:
    text = "def function(argument):\n    value = argument + 1\n    return value\n\n\n"
    return np.resize(model.tokenizer.encode(text), n_tokens)
