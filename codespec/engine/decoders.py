"""The decoder of the settings' model."""

from __future__ import annotations

from collections.abc import Callable

from codespec.backends.generators import GeneratorBackend
from codespec.backends.registry import backend_of, target_of
from codespec.config import Settings
from codespec.drafters.guard import GuardPolicy
from codespec.engine.decoder import Decoder
from codespec.engine.generator import Streamed
from codespec.engine.passes import TargetDecoder


def decoder_of(
    settings: Settings,
    on_loading: Callable[[float], None],
    policy: GuardPolicy,
    clock: Callable[[], float],
) -> Decoder:
    """The decoder over the model that settings name, loaded. on_loading: see `TargetDecoder`.
    Raises: ModelError, ConfigError."""
    where = target_of(settings.model)
    backend = backend_of(where)
    if isinstance(backend, GeneratorBackend):
        return Streamed(backend.open(where, settings), settings, clock)
    return TargetDecoder(settings, where, on_loading, policy, clock)
