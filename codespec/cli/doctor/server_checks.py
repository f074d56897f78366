"""Check of a model that decodes by itself, such as one on a server: what it is, and its speed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from codespec.backends.generators import (
    Generator,
    GeneratorBackend,
    GeneratorFigures,
    GeneratorPrompt,
)
from codespec.backends.registry import check as check_model
from codespec.cli.doctor.findings import Finding
from codespec.cli.doctor.verdicts import LINE_TOKENS, in_time, kind
from codespec.config import Settings
from codespec.engine.served import fallback_of
from codespec.errors import ConfigError, ModelError
from codespec.types import SamplingParams

_N_TOKENS = 32
"""Tokens asked for, to measure it."""
_PATIENCE_S = 20.0
"""Most seconds for them."""
_TEXT = "def function(argument):\n    value = argument + 1\n    return value\n\n\n"


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer's speed. first_ms: to its first token. token_ms: for each further one."""

    first_ms: float
    token_ms: float

    @property
    def line_ms(self) -> float:
        """Milliseconds for a line."""
        return self.first_ms + (LINE_TOKENS - 1) * self.token_ms


def check(
    backend: GeneratorBackend, where: str, settings: Settings, *, measure: bool
) -> tuple[list[Finding], str]:
    """(findings, hash of the tokenizer). Raises: ModelError, ConfigError."""
    with closing(backend.open(where, settings)) as generator:
        info = generator.info
        found = [Finding("model", "ok", f"{info.name}: {info.backend} computes it, {where}")]
        found += _ways(generator)
        found += kind(info.name, info.fim is not None)
        if measure:
            found += _measured(generator, settings)
    found += (Finding("model", *r) for r in backend.remarks_on(where, settings.model.kv_type))
    found += _fallback(settings)
    return found, info.tokenizer_hash


def _ways(generator: Generator) -> Iterator[Finding]:
    yield Finding("model", "note", "it decodes by itself: nothing is drafted for it here")
    if generator.n_units == 1:
        yield Finding("model", "ok", "its tokens are known here")
    else:
        yield Finding(
            "model",
            "note",
            "its tokens are not known here: text is sent, and half-typed words are completed worse",
            "See docs/remote-model.md for how to name its vocabulary.",
        )


def _measured(generator: Generator, settings: Settings) -> Iterator[Finding]:
    """Findings on two answers, of which the second finds its prompt read."""
    try:
        cold, warm = answered(generator), answered(generator)
    except ModelError as e:
        yield Finding("model", "error", e.message, e.hint)
        return
    if cold is None or warm is None:
        yield Finding(
            "model",
            "warning",
            f"it says nothing within {_PATIENCE_S:g} s",
            "See its log; or choose a smaller model.",
        )
        return
    rate = 1e3 / warm.token_ms if warm.token_ms else 0.0
    yield Finding(
        "model",
        "ok",
        f"first token after {warm.first_ms:.0f} ms ({cold.first_ms:.0f} ms with a new prompt), "
        f"then {rate:.0f} tokens a second",
    )
    meaning = f"a line takes about {warm.line_ms:.0f} ms while typing"
    yield in_time(settings.completion, warm.line_ms, cold.line_ms, meaning, None)


def answered(generator: Generator) -> Answered | None:
    """Ask for some tokens. None where none come in time. Raises: ModelError."""
    tokens = generator.tokenizer.encode(4 * _TEXT)
    text = generator.text(tokens)
    prompt = GeneratorPrompt(tokens, text, text, "", _N_TOKENS, SamplingParams())
    began_s = first_s = last_s = time.perf_counter()
    n_first = n_all = 0
    with closing(
        generator.stream(prompt, lambda: time.perf_counter() - began_s > _PATIENCE_S)
    ) as stream:
        for piece in stream:
            if isinstance(piece, GeneratorFigures):
                continue
            last_s = time.perf_counter()
            units = generator.tokenizer.encode(piece) if isinstance(piece, bytes) else piece
            n_all += len(units)
            if not n_first:
                first_s, n_first = last_s, n_all
    if not n_all:
        return None
    n_further = (n_all - n_first) / generator.n_units
    token_ms = (last_s - first_s) * 1e3 / n_further if n_further else 0.0
    return Answered((first_s - began_s) * 1e3, token_ms)


def _fallback(settings: Settings) -> Iterator[Finding]:
    named = settings.model.fallback
    if not named:
        yield Finding(
            "model",
            "note",
            "while it does not answer, there are no suggestions",
            'model.fallback = "bundled" has the bundled model answer then.',
        )
        return
    try:
        check_model(fallback_of(settings))
    except (ConfigError, ModelError) as e:
        yield Finding("model", "error", e.message, e.hint)
        return
    yield Finding("model", "ok", f"while it does not answer, {named} does")
