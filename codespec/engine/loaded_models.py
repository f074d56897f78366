"""The models of an engine: target and draft models, loaded, measured and closed together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codespec.backends.base import Model, MtpHead, Target, non_finite_logits
from codespec.backends.registry import targets_of
from codespec.config import ModelSettings
from codespec.cost.measure import CurveStore
from codespec.cost.tuner import Tuner, Tuners, thread_counts
from codespec.errors import ModelError
from codespec.system import folders
from codespec.types import NO_DRAFT, ModelInfo

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningLayer:
    """A model's MTP head, which drafts for it, and the tuner of its passes."""

    context: MtpHead
    tuner: Tuner


@dataclass(frozen=True, slots=True)
class Running:
    """A model, its context, and the cost of its passes."""

    model: Model
    context: Target
    tuner: Tuner
    own: RunningLayer | None = None


class Models:
    """The loaded models. One thread only."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._running: list[Running] = []
        self._busy_s_unloaded = 0.0
        self.tuners = Tuners([])

    def load(
        self,
        where: str | Path,
        on_progress: Callable[[float], None] = lambda _: None,
        *,
        mtp_head: bool = False,
    ) -> Running:
        """Load a model. where: see `registry.backend_of`. on_progress: called with the share that
        is loaded, 0 to 1. mtp_head: True to load the MTP head, where the model has one. Raises:
        ModelError."""
        chosen = self._settings
        backend = targets_of(where)
        model = backend.open(
            str(where),
            n_gpu_layers=chosen.n_gpu_layers,
            mtp_head=mtp_head,
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
        own = self._mtp_head(model, context, key)
        running = Running(model, context, self._tuner_of(context, key), own)
        self._running.append(running)
        self.tuners.add(running.tuner)
        if own is not None:
            self.tuners.add(own.tuner)
        return running

    def _mtp_head(self, model: Model, context: Target, key: str) -> RunningLayer | None:
        """The MTP head; None where there is none, or it cannot be used: a faulty draft model must
        not fail a request."""
        try:
            layer = model.mtp_head(context, self._settings.kv_type)
        except ModelError as e:
            log.warning("the layer that drafts for its model is left alone: %s", e.message)
            return None
        if layer is None:
            return None
        return RunningLayer(layer, self._tuner_of(layer, f"{key}:own layer"))

    def unload(self, running: Running) -> None:
        """Unload a model that is no longer in use."""
        self._running.remove(running)
        self._busy_s_unloaded += _busy_s(running)
        for tuner in _tuners(running):
            self.tuners.remove(tuner)
        _close(running)

    @property
    def busy_s(self) -> float:
        """Seconds spent in passes so far."""
        return self._busy_s_unloaded + sum(map(_busy_s, self._running))

    @property
    def saved_bytes(self) -> int:
        """Most bytes for KV caches that are put aside."""
        return sum(running.context.saved_bytes for running in self._running)

    def close(self) -> None:
        self.tuners.save()
        for running in self._running:
            _close(running)
        self._running = []

    def _tuner_of(self, context: Target, key: str) -> Tuner:
        fixed = self._settings.n_threads or not context.can.has_threads
        counts = (context.n_threads,) if fixed else thread_counts(context.n_threads)
        store = CurveStore(folders.cache_path() / "curves.json")
        return Tuner(context, counts, store, key)


def _tuners(running: Running) -> list[Tuner]:
    return [running.tuner, *([running.own.tuner] if running.own is not None else [])]


def _busy_s(running: Running) -> float:
    own = running.own.context.busy_s if running.own is not None else 0.0
    return running.context.busy_s + own


def _close(running: Running) -> None:
    if running.own is not None:
        running.own.context.close()
    running.context.close()
    running.model.close()


def _try_out(context: Target) -> None:
    """Make a pass over one token: weights that are no numbers load without an error, and their
    output is nonsense. Raises: ModelError."""
    token = np.zeros(1, np.int32)
    rows = context.decode(token, NO_DRAFT)
    if not np.isfinite(rows.row(0).max()):
        raise non_finite_logits(context.info)
    # Empties the KV cache: a prefill leaves the last token out.
    context.prefill(token, lambda: False)


def curve_key(info: ModelInfo, settings: ModelSettings, build: str) -> str:
    """Key of a model's cost curves: all that the cost of passes depends on but the number of
    threads. build: version of the backend."""
    parts = [Path(info.path).name, str(info.file_bytes), info.backend, build]
    # Another KV type changes the attention kernels, other layers on the GPU the processor.
    if settings.kv_type != "f16":
        parts.append(settings.kv_type)
    if settings.n_gpu_layers >= 0 and info.backend != "cpu":
        parts.append(f"{settings.n_gpu_layers} layers")
    return ":".join(parts)
