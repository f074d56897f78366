"""The models of an engine: loaded, timed, and closed together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codespec import folders
from codespec.backends.base import DraftingLayer, Model, Target, computes_nothing
from codespec.backends.registry import targets_of
from codespec.config import ModelSettings
from codespec.drafters.measure import CurveStore
from codespec.engine.pace import Pace, Paces, thread_counts
from codespec.errors import ModelError
from codespec.types import NO_DRAFT, ModelInfo

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningLayer:
    """A model's own layer that drafts for it, and what passes over that cost."""

    context: DraftingLayer
    pace: Pace


@dataclass(frozen=True, slots=True)
class Running:
    """A model file, its context, and what passes over that cost."""

    model: Model
    context: Target
    pace: Pace
    own: RunningLayer | None = None


class Models:
    """One thread only."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._running: list[Running] = []
        self._busy_s_unloaded = 0.0
        self.paces = Paces([])

    def load(
        self,
        where: str | Path,
        on_progress: Callable[[float], None] = lambda _: None,
        *,
        own_layer: bool = False,
    ) -> Running:
        """where: see `registry.backend_of`. on_progress: told the share that is loaded, 0 to 1.
        own_layer: with the layer that drafts for it, where it has one. Raises: ModelError."""
        chosen = self._settings
        backend = targets_of(where)
        model = backend.open(
            str(where),
            n_gpu_layers=chosen.n_gpu_layers,
            own_layer=own_layer,
            on_progress=on_progress,
        )
        try:
            context = model.context(
                n_ctx=model.window(chosen.window(model.info.n_ctx)),
                n_threads=chosen.n_threads,
                kv_type=chosen.kv_type,
                max_saved_bytes=chosen.max_saved_kv_bytes,
            )
            try:
                _try_out(context)
            except ModelError:
                context.close()
                raise
        except ModelError:
            model.close()
            raise
        key = curve_key(model.info, self._settings, backend.build())
        own = self._own_layer(model, context, key)
        running = Running(model, context, self._pace_of(context, key), own)
        self._running.append(running)
        self.paces.add(running.pace)
        if own is not None:
            self.paces.add(own.pace)
        return running

    def _own_layer(self, model: Model, context: Target, key: str) -> RunningLayer | None:
        """None where it cannot be used: what is only faster must not fail."""
        try:
            layer = model.own_layer(context, self._settings.kv_type)
        except ModelError as e:
            log.warning("the layer that drafts for its model is left alone: %s", e.message)
            return None
        if layer is None:
            return None
        return RunningLayer(layer, self._pace_of(layer, f"{key}:own layer"))

    def unload(self, running: Running) -> None:
        """Nobody uses this one any more."""
        self._running.remove(running)
        self._busy_s_unloaded += _busy_s(running)
        for pace in _paces(running):
            self.paces.remove(pace)
        _close(running)

    @property
    def busy_s(self) -> float:
        """Time spent in passes up to now, seconds."""
        return self._busy_s_unloaded + sum(map(_busy_s, self._running))

    @property
    def saved_bytes(self) -> int:
        """Most memory for caches that are put aside."""
        return sum(running.context.saved_bytes for running in self._running)

    def close(self) -> None:
        self.paces.save()
        for running in self._running:
            _close(running)
        self._running = []

    def _pace_of(self, context: Target, key: str) -> Pace:
        fixed = self._settings.n_threads or not context.can.has_threads
        counts = (context.n_threads,) if fixed else thread_counts(context.n_threads)
        store = CurveStore(folders.cache_path() / "curves.json")
        return Pace(context, counts, store, key)


def _paces(running: Running) -> list[Pace]:
    return [running.pace, *([running.own.pace] if running.own is not None else [])]


def _busy_s(running: Running) -> float:
    own = running.own.context.busy_s if running.own is not None else 0.0
    return running.context.busy_s + own


def _close(running: Running) -> None:
    if running.own is not None:
        running.own.context.close()
    running.context.close()
    running.model.close()


def _try_out(context: Target) -> None:
    """A pass over one token: weights that are no numbers are loaded without a word, and what such a
    model says is nonsense. Raises: ModelError."""
    token = np.zeros(1, np.int32)
    rows = context.decode(token, NO_DRAFT)
    if not np.isfinite(rows.row(0).max()):
        raise computes_nothing(context.info)
    context.prefill(token, lambda: False)  # keeps nothing of the only token


def curve_key(info: ModelInfo, settings: ModelSettings, build: str) -> str:
    """Names what the cost of passes depends on, but for the number of threads. build: of the
    backend."""
    parts = [Path(info.path).name, str(info.file_bytes), info.backend, build]
    # Other attention, other places to compute in.
    if settings.kv_type != "f16":
        parts.append(settings.kv_type)
    if settings.n_gpu_layers >= 0 and info.backend != "cpu":
        parts.append(f"{settings.n_gpu_layers} layers")
    return ":".join(parts)
