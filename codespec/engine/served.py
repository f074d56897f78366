"""The engine of a model that another program serves: while that does not answer, a model here does,
where `model.fallback` names one; else nobody."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from codespec.backends.generators import ChangedError, UnavailableError
from codespec.backends.registry import in_full, scheme_of
from codespec.config import Settings
from codespec.engine.engine_on_demand import EngineOnDemand
from codespec.engine.local import LocalEngine
from codespec.engine.next_edit_model import memory_needed
from codespec.engine.next_edits import lookups
from codespec.engine.turns import Turns, in_one_turn
from codespec.engine.workspace_indexes import WorkspaceIndexes
from codespec.errors import CodespecError, ConfigError, ModelError
from codespec.models.entries import memory_of
from codespec.models.hardware import free_memory
from codespec.models.split import size_of
from codespec.next_edit import NextEditRequest, NextEdits, NoNextEdit
from codespec.reasons import NoSuggestion
from codespec.requests import Completion, CompletionRequest, OnProgress, Paused

OPEN_AGAIN_S = 5.0
"""Seconds after which a server that could not be asked what it is, is asked again."""
UNUSED_S = 600.0
"""Seconds without use after which the model here is unloaded."""
_LOOK_S = 0.01
"""Seconds between two looks of a request that waits for the model here."""


class ServedEngine:
    """`Engine` over the server of `model.target`, and over the model of `model.fallback`, which is
    loaded when it is needed first. One thread only.

    build: builds an engine from settings.

    Raises: ModelError, ConfigError where the settings cannot be used, whatever the server does.
    """

    def __init__(
        self,
        settings: Settings,
        build: Callable[[Settings], LocalEngine],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._trouble = ""
        self._used_s = 0.0
        alone = _with_models(settings, settings.model.target, settings.edits.model)
        self._served = EngineOnDemand(lambda: build(alone), retry_s=OPEN_AGAIN_S, clock=clock)
        self._here: EngineOnDemand[LocalEngine] | None = None
        if settings.model.fallback:
            here = _with_models(settings, fallback_of(settings))
            self._here = EngineOnDemand(
                lambda: _build_here(here, build), here.model.target, clock=clock
            )
        indexes = WorkspaceIndexes(None)
        self._edits = lookups(settings.index.exclude, indexes.get)
        """Next edits as long as no engine is built: they need no model."""
        self._served.ready()
        self._served.wait()
        try:
            self._served.ready()
        except UnavailableError as e:
            self._trouble = e.words

    @property
    def main(self) -> LocalEngine | None:
        """The engine over the server; None until that was asked what it is."""
        return self._served.built

    def _open(self) -> LocalEngine | None:
        """The engine over the server, if that can be asked."""
        if self._served.built is None:
            try:
                if self._served.ready() is not None:
                    self._trouble = ""
            except UnavailableError as e:
                self._trouble = e.words
            except CodespecError as e:
                self._trouble = e.message
        return self._served.built

    @property
    def notice(self) -> str:
        """The way in which it answers, and why, for people; "" for the usual one."""
        main = self._served.built
        trouble = self._trouble if main is None else main.trouble or self._trouble
        if not trouble:
            return ""
        if self._here is None:
            return f"{trouble}: no suggestions until it does"
        if self._here.failure is not None:
            why = self._here.failure.message
            return f"{trouble}: no suggestions until it does, as the local model fails: {why}"
        return f"{trouble}: local model until it does"

    @property
    def saved_bytes(self) -> int:
        """See `LocalEngine.saved_bytes`; with the memory of the model here."""
        main = self._served.built
        n_bytes = main.saved_bytes if main is not None else memory_needed(self._settings)
        if self._here is not None:
            n_bytes += (
                _memory_of(fallback_of(self._settings)) + self._settings.model.max_saved_kv_bytes
            )
        return n_bytes

    def complete(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: OnProgress | None = None,
    ) -> Completion:
        return in_one_turn(self.completing(request, cancelled, on_progress))

    def completing(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: OnProgress | None = None,
        paused: Paused = lambda has_progressed: False,
    ) -> Turns[Completion]:
        """See `requests.Interruptible`."""
        due_s = self._clock() + (request.deadline_ms / 1e3 or float("inf"))

        def is_over() -> bool:
            return cancelled() or self._clock() >= due_s

        def with_rest() -> CompletionRequest:
            left_ms = max(1.0, (due_s - self._clock()) * 1e3)
            return replace(request, deadline_ms=left_ms) if request.deadline_ms else request

        main = self._open()
        while main is None and self._here is None and self._served.is_loading and not is_over():
            if paused(True):
                yield
            self._served.wait(_LOOK_S)
            main = self._open()
        if main is not None:
            try:
                done = yield from main.completing(request, cancelled, on_progress, paused)
            except UnavailableError as e:
                self._trouble = e.words
            except ChangedError:
                self._served.close()
                return (yield from self.completing(with_rest(), cancelled, on_progress, paused))
            else:
                if done.finish in ("stop", "length"):  # the server has answered
                    self._trouble = ""
                return done
        here = yield from self._loaded_here(is_over, paused)
        if here is None:
            why = NoSuggestion.SERVER_AWAY
            return Completion(why=why, detail=self.notice or why.text)
        return (yield from here.completing(with_rest(), cancelled, on_progress, paused))

    def _loaded_here(
        self, is_over: Callable[[], bool], paused: Paused
    ) -> Turns[LocalEngine | None]:
        """The engine over the model here; None where there is none, or none in time."""
        if self._here is None:
            return None
        self._used_s = self._clock()
        try:
            while (here := self._here.ready()) is None:
                if is_over():
                    return None
                if paused(True):
                    yield
                self._here.wait(_LOOK_S)
        except CodespecError:  # `notice` tells it
            return None
        return here

    def prefetching(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        paused: Paused = lambda has_progressed: False,
    ) -> Turns[None]:
        """See `requests.Prefetcher`. Loads nothing."""
        main, here = self._served.built, self._here.built if self._here is not None else None
        engine = main if not self.notice else here
        if engine is not None:
            yield from engine.prefetching(request, cancelled, paused)

    @property
    def _at_hand(self) -> list[LocalEngine]:
        """The engines that are built, the one over the server first."""
        built = (self._served.built, self._here.built if self._here is not None else None)
        return [engine for engine in built if engine is not None]

    def find_edits(
        self, request: NextEditRequest, cancelled: Callable[[], bool] = lambda: False
    ) -> NextEdits:
        """See `requests.EditFinder`."""
        for engine in self._at_hand:
            return engine.find_edits(request, cancelled)
        return self._edits.find(request, cancelled)

    def edit_outcomes(self) -> tuple[int, int]:
        """See `requests.EditFinder`."""
        for engine in self._at_hand:
            return engine.edit_outcomes()
        return self._edits.outcomes()

    def finding(
        self,
        request: NextEditRequest,
        cancelled: Callable[[], bool] = lambda: False,
        paused: Paused = lambda has_progressed: False,
    ) -> Turns[NextEdits]:
        """See `requests.ModelEditFinder`."""
        for engine in self._at_hand:
            return (yield from engine.finding(request, cancelled, paused))
        if not self._settings.edits.model:
            return NextEdits(why=NoNextEdit.NO_MODEL)
        return NextEdits(why=NoNextEdit.FAILED, detail=self.notice)

    def closed(self, path: str) -> None:
        """See `requests.Librarian`."""
        self._edits.forget(path)
        for engine in self._at_hand:
            engine.closed(path)

    def idle(self, interrupted: Callable[[], bool] = lambda: False) -> bool:
        """See `requests.Idler`."""
        here = self._here
        is_unused = not self.notice and self._clock() - self._used_s > UNUSED_S
        if here is not None and here.built is not None and is_unused:
            here.close()
        if self._served.is_loading:  # who it is, is told as soon as it is known
            self._served.wait(_LOOK_S)
            self._open()
            return True
        at_hand = self._at_hand
        if not at_hand:
            self._edits.save()  # for the engine that is built next
        return (
            any(engine.idle(interrupted) for engine in at_hand) if at_hand else self._edits.idle()
        )

    def close(self) -> None:
        self._edits.save()
        self._served.close()
        if self._here is not None:
            self._here.close()


def fallback_of(settings: Settings) -> str:
    """The file of `model.fallback`. Raises: ConfigError for another server."""
    named = settings.model.fallback
    if scheme_of(named):
        raise ConfigError(
            f"model.fallback: {named} is not on this machine",
            "Name the file of a model, one of models list, or bundled.",
        )
    return in_full(named)


def _with_models(settings: Settings, target: str, edits: str = "") -> Settings:
    """The settings with other models."""
    model = msgspec.structs.replace(settings.model, target=target, fallback="")
    return msgspec.structs.replace(
        settings, model=model, edits=msgspec.structs.replace(settings.edits, model=edits)
    )


def _build_here(settings: Settings, build: Callable[[Settings], LocalEngine]) -> LocalEngine:
    """An engine over the model here. Raises: ModelError where memory does not suffice."""
    n_needed = _memory_of(settings.model.target)
    if n_needed > free_memory():
        raise ModelError(
            f"it needs {n_needed / 1e9:.1f} GB, {free_memory() / 1e9:.1f} GB are free",
            "Close other programs, or name a smaller model in model.fallback.",
        )
    return build(settings)


def _memory_of(file: str) -> int:
    """Bytes of memory that a model takes, about; 0 for a file that is not there."""
    path = Path(file)
    return memory_of(size_of(path)) if path.is_file() else 0
