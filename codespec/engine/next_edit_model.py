"""The next-edit model, beside the one that completes: which of the two answers a request."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from codespec.backends.base import CancelledError
from codespec.backends.registry import in_full, scheme_of, target_of
from codespec.config import Settings, without_none
from codespec.edits.formats.base import NextEditFormat, PromptForm
from codespec.edits.formats.registry import form_named, form_spoken
from codespec.engine.engine_on_demand import EngineOnDemand
from codespec.engine.turns import Turns
from codespec.errors import CodespecError, InputError
from codespec.models.entries import memory_of
from codespec.models.resolve import name_in
from codespec.models.split import size_of
from codespec.requests import CompletionRequest, Paused
from codespec.types import ModelInfo

N_CTX = 6144
"""Tokens of context of a next-edit model, where its training allows: a prompt and its answer."""


_LOOK_S = 0.01
"""Seconds between two looks of a request that waits for the model."""


class SpeakingEngine(Protocol):
    """An engine with one model, and the names that this goes by."""

    @property
    def info(self) -> ModelInfo: ...
    @property
    def special_tokens(self) -> Mapping[str, int]: ...

    @property
    def settings(self) -> Settings: ...
    def closed(self, path: str) -> None: ...
    def idle(self, interrupted: Callable[[], bool]) -> bool: ...
    def close(self) -> None: ...


_E = TypeVar("_E", bound=SpeakingEngine)


def format_of(engine: SpeakingEngine) -> NextEditFormat | None:
    """The format in which an engine's model is asked for next edits; None where it is no such
    model."""
    form = form_of_model(engine.info, engine.special_tokens)
    return form if isinstance(form, NextEditFormat) else None


def form_of_model(info: ModelInfo, vocabulary: Collection[str]) -> PromptForm | None:
    """The form of next-edit prompts that a model was trained on; None for one that was not."""
    return form_spoken(f"{info.name} {Path(info.path).name}", vocabulary)


def is_target(settings: Settings) -> bool:
    """True if the next-edit model is the model that completes: it is loaded once then."""
    if not settings.edits.model:
        return False
    try:
        named, target = in_full(settings.edits.model), target_of(settings.model)
        if scheme_of(named) or scheme_of(target):
            return named == target
        return os.path.samefile(named, target)
    except (CodespecError, OSError):  # who loads it says what is wrong
        return False


def roomy(settings: Settings) -> Settings:
    """The settings, with the context of a next-edit model where the model that completes is
    one."""
    if not is_target(settings):
        return settings
    model = msgspec.structs.replace(settings.model, n_ctx=max(settings.model.n_ctx, N_CTX))
    return msgspec.structs.replace(settings, model=model)


def without_draft_model(settings: Settings) -> tuple[str, ...]:
    """Names of the settings' drafters for what a next-edit model writes: no draft model, as that
    stands in the prompt for the most part."""
    return without_none(name for name in settings.drafting.drafters if name != "model")


def memory_needed(settings: Settings) -> int:
    """Bytes of memory that the next-edit model and its saved states take, about; 0 without one, for
    one that is no file here, and for the model that completes."""
    where = settings.edits.model
    if not where or scheme_of(where) or is_target(settings):
        return 0
    path = Path(in_full(where))
    if not path.is_file():
        return 0
    return memory_of(size_of(path)) + settings.model.max_saved_kv_bytes


class NextEditModel(Generic[_E]):
    """The engine over the model of `edits.model`, built when it is first needed.

    build: builds an engine from settings.
    own: the engine that completes, which serves where its model is the same.
    """

    def __init__(
        self,
        settings: Settings,
        build: Callable[[Settings], _E],
        own: _E,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.where = settings.edits.model
        self._settings = settings
        self._shared = own if is_target(settings) else None
        self._own = EngineOnDemand(
            lambda: build(_settings_of_model(settings)), self.where, clock=clock
        )

    def ready(self) -> _E | None:
        """The engine; None while its model is loaded, see `EngineOnDemand.ready`."""
        return self._shared or self._own.ready()

    def get(self) -> _E:
        """The engine. Cost: waits for its model to be loaded. Raises: as `ready`."""
        while (engine := self.ready()) is None:
            self._own.wait()
        return engine

    def getting(self, cancelled: Callable[[], bool], paused: Paused) -> Turns[_E]:
        """`get`, in turns. Raises: CancelledError; as `ready`."""
        while (engine := self.ready()) is None:
            if cancelled():
                raise CancelledError
            if paused(True):
                yield
            self._own.wait(_LOOK_S)
        return engine

    def closed(self, path: str) -> None:
        """See `requests.Librarian`."""
        if self._own.built is not None:
            self._own.built.closed(path)

    def idle(self, interrupted: Callable[[], bool]) -> bool:
        """See `requests.Idler`. Loads nothing."""
        return self._own.built is not None and self._own.built.idle(interrupted)

    def close(self) -> None:
        """Free the memory. Cost: waits for a model that is being loaded."""
        self._own.close()

    @property
    def memory_bytes(self) -> int:
        """See `memory_needed`."""
        return memory_needed(self._settings)

    def answering(
        self,
        request: CompletionRequest,
        own: _E,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[tuple[_E, CompletionRequest]]:
        """(the engine that answers a request, the request as it takes it): `own` or this one, the
        one whose model the request names, else the one that speaks the form of its prompt, else
        `own`. Yields while the model of this one is loaded.

        Raises: InputError where no model speaks it; ModelError; CancelledError.
        """
        if not request.model and not request.form:
            return own, request
        engine = yield from self._answering(request, own, cancelled, paused)
        return engine, replace(request, model="", form="")

    def _answering(
        self,
        request: CompletionRequest,
        own: _E,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[_E]:
        if request.model and _is_name_of(request.model, own):
            return own
        if self.where and request.model and self._has_name(request.model):
            return (yield from self.getting(cancelled, paused))
        form = form_named(request.form) if request.form else None
        if form is None or _speaks(own, form):
            return own
        loaded = f"{own.info.name} is loaded, which does not speak it"
        if self.where:
            engine = yield from self.getting(cancelled, paused)
            if _speaks(engine, form):
                return engine
            loaded = f"{own.info.name} and {engine.info.name} are loaded, which do not speak it"
        raise InputError(
            f"the prompt is one for {form.title} (format {form.name}), and {loaded}",
            'Name such a model in edits.model; or send "raw": true to /v1/completions, for the one '
            "that completes.",
        )

    def _has_name(self, name: str) -> bool:
        names = {self.where.casefold(), name_in(self.where).casefold()}
        built = self._own.built
        is_told = built is not None and _is_name_of(name, built)
        return is_told or name.casefold() in names


def _is_name_of(name: str, engine: SpeakingEngine) -> bool:
    info, target = engine.info, engine.settings.model.target
    names = {info.name, name_in(info.path), target, name_in(target)} - {""}
    return name.casefold() in {each.casefold() for each in names}


def _speaks(engine: SpeakingEngine, form: PromptForm) -> bool:
    return form_of_model(engine.info, engine.special_tokens) is form


def _settings_of_model(settings: Settings) -> Settings:
    """Settings of the engine over the next-edit model."""
    return msgspec.structs.replace(
        settings,
        model=msgspec.structs.replace(
            settings.model,
            target=settings.edits.model,
            draft="",
            n_ctx=max(settings.model.n_ctx, N_CTX),
        ),
        drafting=msgspec.structs.replace(settings.drafting, drafters=without_draft_model(settings)),
        edits=msgspec.structs.replace(settings.edits, model=""),
    )
