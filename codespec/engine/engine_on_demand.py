"""An engine that is built when it is first needed."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Generic, Protocol, TypeVar

from codespec.errors import CodespecError
from codespec.system.files import FileState, state_of

RETRY_S = 30.0
"""Seconds after which a model that could not be loaded is tried again: it may fit by then."""


class _Closable(Protocol):
    def close(self) -> None: ...


_E = TypeVar("_E", bound=_Closable)


class EngineOnDemand(Generic[_E]):
    """An engine, or none yet. One thread only.

    build: builds it. file: of its model; where that changes, a failure is out of date. retry_s: so
    long a failure holds.
    """

    def __init__(
        self,
        build: Callable[[], _E],
        file: str = "",
        retry_s: float = RETRY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._build = build
        self._file = file
        self._retry_s = retry_s
        self._clock = clock
        self._loading: Future[_E] | None = None
        self._tried_with: FileState = None
        self._retry_at_s = 0.0
        self.built: _E | None = None
        """The engine, once it is built."""
        self.failure: CodespecError | None = None
        """The reason why it could not be built; None if it can be, or was not tried."""

    @property
    def is_loading(self) -> bool:
        """True while it is built, or was and nobody has taken it."""
        return self._loading is not None

    def ready(self) -> _E | None:
        """The engine; None while its model is loaded, which the first call begins. That takes
        seconds, on a thread of its own: the engine's thread answers others meanwhile. Where it
        failed, it is not tried again before `retry_s` or a change of its file. Raises: ModelError,
        ConfigError."""
        if self.built is not None:
            return self.built
        if self._loading is None:
            self._loading = self._load()
            return None
        if not self._loading.done():
            return None
        loading, self._loading = self._loading, None
        try:
            self.built = loading.result()
        except CodespecError as e:
            self.failure, self._retry_at_s = e, self._clock() + self._retry_s
            raise
        self.failure = None
        return self.built

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the model that is being loaded, at most so long."""
        if self._loading is not None:
            wait((self._loading,), seconds)

    def _load(self) -> Future[_E]:
        file = state_of(self._file)
        if (
            self.failure is not None
            and file == self._tried_with
            and self._clock() < self._retry_at_s
        ):
            # Else it would keep the frames of each request that it is raised for.
            raise self.failure.with_traceback(None)
        self._tried_with = file
        loading: Future[_E] = Future()

        def load() -> None:
            try:
                loading.set_result(self._build())
            except Exception as e:  # raised where the engine is asked for
                loading.set_exception(e)

        Thread(target=load, daemon=True).start()
        return loading

    def close(self) -> None:
        """Free the memory; it is built again when it is needed. Cost: waits for a model that is
        being loaded."""
        if self._loading is not None and self._loading.exception() is None:
            self.built = self._loading.result()
        self._loading = None
        if self.built is not None:
            self.built.close()
        self.built = None
