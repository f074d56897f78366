"""The models of an engine: loaded, timed, and closed together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codespec import folders
from codespec.backends.llama import LlamaTarget, LoadedModel, build, load_model
from codespec.backends.llama.loader import computes_nothing
from codespec.config import ModelSettings
from codespec.drafters.measure import CurveStore
from codespec.engine.pace import Pace, Paces, thread_counts
from codespec.errors import ModelError
from codespec.types import NO_DRAFT, ModelInfo


@dataclass(frozen=True, slots=True)
class Running:
    """A model file, its context, and what passes over that cost."""

    model: LoadedModel
    context: LlamaTarget
    pace: Pace


class Models:
    """One thread only."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._running: list[Running] = []
        self._busy_s_unloaded = 0.0
        self.paces = Paces([])

    def load(self, path: Path, on_progress: Callable[[float], None] = lambda _: None) -> Running:
        """on_progress: told the share that is loaded, 0 to 1. Raises: ModelError."""
        chosen = self._settings
        model = load_model(path, n_gpu_layers=chosen.n_gpu_layers, on_progress=on_progress)
        try:
            context = LlamaTarget(
                model,
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
        running = Running(model, context, self._pace_of(context))
        self._running.append(running)
        self.paces.add(running.pace)
        return running

    def unload(self, running: Running) -> None:
        """Nobody uses this one any more."""
        self._running.remove(running)
        self.paces.remove(running.pace)
        self._busy_s_unloaded += running.context.busy_s
        running.context.close()
        running.model.close()

    @property
    def busy_s(self) -> float:
        """Time spent in passes up to now, seconds."""
        return self._busy_s_unloaded + sum(running.context.busy_s for running in self._running)

    def close(self) -> None:
        self.paces.save()
        for running in self._running:
            running.context.close()
            running.model.close()
        self._running = []

    def _pace_of(self, context: LlamaTarget) -> Pace:
        info = context.info
        fixed = self._settings.n_threads or info.backend != "cpu"
        counts = (context.n_threads,) if fixed else thread_counts(context.n_threads)
        store = CurveStore(folders.cache_path() / "curves.json")
        return Pace(context, counts, store, curve_key(info, self._settings))


def _try_out(context: LlamaTarget) -> None:
    """A pass over one token: weights that are no numbers are loaded without a word, and what such a
    model says is nonsense. Raises: ModelError."""
    token = np.zeros(1, np.int32)
    rows = context.decode(token, NO_DRAFT)
    if not np.isfinite(rows.row(0).max()):
        raise computes_nothing(Path(context.info.path))
    context.prefill(token, lambda: False)  # keeps nothing of the only token


def curve_key(info: ModelInfo, settings: ModelSettings) -> str:
    """Names what the cost of passes depends on, but for the number of threads."""
    parts = [Path(info.path).name, str(info.file_bytes), info.backend, build()]
    # Other attention, other places to compute in.
    if settings.kv_type != "f16":
        parts.append(settings.kv_type)
    if settings.n_gpu_layers >= 0 and info.backend != "cpu":
        parts.append(f"{settings.n_gpu_layers} layers")
    return ":".join(parts)
