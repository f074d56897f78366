"""Failures of a server: what each means to people, which may pass, and the circuit breaker, which
lets a failing server alone."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from codespec.backends.generators import Stream, UnavailableError
from codespec.reasons import Reason

RETRY_S = 0.05
"""Seconds before a request is made again."""
_LOOK_S = 0.01
"""Seconds between two looks at whether the request is still wanted."""
SILENT_S = 1.0
"""Least seconds without any text after which a request that was given up counts as a failure: while
somebody types, most are given up sooner. So long without a byte by the deadline, and the server is
sure to fail."""
PAUSE_S, MAX_PAUSE_S = 2.0, 60.0
"""Seconds for which a server is left alone; doubled with each further failure."""


class ServerFailure(Reason):
    """Failure of a server."""

    UNREACHABLE = "unreachable", "the server does not answer"
    SILENT = "silent", "the server does not answer in time"
    CUT_OFF = "cut_off", "the server does not finish its answers"
    BUSY = "busy", "the server does not take more requests"
    BROKEN = "broken", "the server does not work"
    REFUSED = "refused", "the server does not take the request"
    WRONG_KEY = "wrong_key", "the server does not take the key"
    WRONG_PATH = "wrong_path", "the server does not know this address, or the model"
    REDIRECT = "redirect", "the server does not answer itself, and names another address"
    UNPROVEN = "unproven", "the server does not prove who it is"
    NOT_UNDERSTOOD = "not_understood", "the server does not answer as a model's server does"

    @property
    def may_pass(self) -> bool:
        """True if the same request may be answered a moment later."""
        return self in _PASSING

    @property
    def hint(self) -> str:
        """The next step."""
        return _HINTS.get(self, "See whether it runs, and whether model.target is its address.")


_F = ServerFailure
_PASSING = frozenset((_F.UNREACHABLE, _F.CUT_OFF, _F.BUSY, _F.BROKEN))
_N_FEW = 3
"""Failures in a row, where each may be due to its request."""
_HINTS = {
    _F.WRONG_KEY: "Write the key into the file that server.key_file names.",
    _F.WRONG_PATH: "Compare model.target with the server's own address, path and model names.",
    _F.REDIRECT: "Name that address in model.target, if you trust it: it is not followed.",
    _F.UNPROVEN: "Name the file of your own authority's certificates in server.ca_file.",
    _F.NOT_UNDERSTOOD: "Compare model.target with the server's own address.",
    _F.REFUSED: "See the server's log.",
    _F.BROKEN: "See the server's log.",
    _F.CUT_OFF: "See the server's log.",
    _F.BUSY: "Wait, or let it take more requests.",
}


class ServerError(UnavailableError):
    """A request that a server did not answer. detail: what was seen, such as a status; never text
    of a document, a key, or what a server said. retry_after_s: pause that the server asks for."""

    def __init__(
        self, failure: ServerFailure, detail: str = "", retry_after_s: float = 0.0
    ) -> None:
        message = f"{failure.text}: {detail}" if detail else failure.text
        super().__init__(message, failure.hint, failure.text)
        self.failure = failure
        self.retry_after_s = retry_after_s

    def at(self, url: str) -> ServerError:
        """This error, with the address of the server that was asked."""
        self.message = f"{url}: {self.message}"
        return self


def of_status(status: int, retry_after: str = "") -> ServerError:
    """The error of an HTTP status that is not 200. retry_after: the header of that name."""
    detail = f"status {status}"
    if 300 <= status < 400:
        return ServerError(_F.REDIRECT, detail)
    if status in (401, 403, 407):
        return ServerError(_F.WRONG_KEY, detail)
    if status in (404, 405, 410):
        return ServerError(_F.WRONG_PATH, detail)
    if status == 429 or (status == 503 and retry_after):
        return ServerError(_F.BUSY, detail, _seconds(retry_after))
    return ServerError(_F.BROKEN if status >= 500 or status < 400 else _F.REFUSED, detail)


def of_exception(error: OSError) -> ServerError:
    """The error of an exception that a connection raised."""
    kind = type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        return ServerError(_F.UNPROVEN, getattr(error, "verify_message", ""))
    if isinstance(error, ssl.SSLError):
        is_cut = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        return ServerError(_F.CUT_OFF if is_cut else _F.UNPROVEN, getattr(error, "reason", kind))
    if isinstance(error, TimeoutError):
        return ServerError(_F.SILENT)
    if isinstance(error, socket.gaierror):
        return ServerError(_F.UNREACHABLE, "no such host is known")
    if isinstance(error, ConnectionRefusedError):
        return ServerError(_F.UNREACHABLE, "nothing listens there")
    if isinstance(error, ConnectionError):
        return ServerError(_F.CUT_OFF, kind)
    return ServerError(_F.UNREACHABLE, error.strerror or kind)


def _seconds(retry_after: str) -> float:
    """Seconds of a header Retry-After; 0 for a date, or nothing."""
    said = retry_after.strip()
    return min(float(said), MAX_PAUSE_S) if said.isascii() and said.isdecimal() else 0.0


@dataclass(slots=True)
class _Pause:
    """A pause in which a server is not asked. is_tried: one request finds out whether it is
    over."""

    until_s: float
    is_tried: bool = False


class CircuitBreaker:
    """Lets a server that fails alone for a while; then one request tries it again, and its outcome
    closes the circuit or begins a longer pause. For any threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._n_few = 0
        self._n_cut = 0
        self._n_pauses = 0
        self._pause: _Pause | None = None
        self._error: ServerError | None = None

    @property
    def trouble(self) -> str:
        """The failure for which the server is left alone, for people; "" where it is asked."""
        with self._lock:
            return self._error.failure.text if self._pause and self._error else ""

    def enter(self) -> None:
        """Begin a request; `succeeded`, `failed` or `abandoned` ends it. Raises: ServerError where
        the server must not be asked now."""
        with self._lock:
            if self._pause is None or self._error is None:
                return
            if self._pause.is_tried or self._clock() < self._pause.until_s:
                # Else it would keep the frames of each request that it is raised for.
                raise self._error.with_traceback(None)
            self._pause.is_tried = True

    def heard(self) -> None:
        """Note that a request is being answered."""
        with self._lock:
            self._n_few = self._n_pauses = 0
            self._pause = self._error = None

    def succeeded(self) -> None:
        """End a request that was answered."""
        self._n_cut = 0
        self.heard()

    def cut_off(self, error: ServerError) -> None:
        """End a request that failed after some text. One of several engines behind an address may
        have ended: the others answer at once. So several in a row are needed."""
        self._n_cut += 1
        if self._n_cut >= _N_FEW:
            self.failed(error)

    def failed(self, error: ServerError, is_sure: bool = True) -> None:
        """End a request that failed. is_sure: False where that may be due to the request: several
        in a row are needed."""
        with self._lock:
            self._n_few += 1
            is_trial = self._pause is not None and self._pause.is_tried
            if not is_sure and self._n_few < _N_FEW and not is_trial:
                return
            pause_s = max(PAUSE_S * 2.0 ** min(self._n_pauses, 10), error.retry_after_s)
            self._n_pauses += 1
            self._error = error
            self._pause = _Pause(self._clock() + min(pause_s, MAX_PAUSE_S))

    def abandoned(self) -> None:
        """End a request that nobody waits for any more: nothing is known of the server."""
        with self._lock:
            if self._pause is not None:
                self._pause.is_tried = False


def guarded(
    ask: Callable[[], Stream],
    breaker: CircuitBreaker,
    cancelled: Callable[[], bool],
    left_s: Callable[[], float],
    *,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Stream:
    """The stream of a request that is made at most twice: once more where the failure may pass, no
    text came yet, and the deadline allows. An answer that is cut off after some text is one that
    the deadline ended. ask: makes the request. left_s: seconds until the deadline.

    Raises: ServerError.
    """
    breaker.enter()
    began_s = clock()
    has_text = is_again = False
    outcome = breaker.abandoned
    try:
        while True:
            try:
                with closing(ask()) as stream:
                    while True:
                        try:
                            piece = next(stream)
                        except StopIteration as end:
                            if has_text or not cancelled():
                                outcome = breaker.succeeded
                            return end.value
                        if not has_text:  # at once: who asked may leave at any piece
                            has_text, outcome = True, _nothing
                            breaker.heard()
                        yield piece
            except ServerError as e:
                is_early = e.failure is _F.SILENT and clock() - began_s < SILENT_S
                is_sure = e.failure is not _F.REFUSED and not is_early
                outcome = _failing(breaker, e, is_sure)
                if has_text:
                    outcome = partial(breaker.cut_off, e)
                    return "deadline"
                pause_s = max(RETRY_S, e.retry_after_s)
                if is_again or not e.failure.may_pass or cancelled() or pause_s >= left_s():
                    raise
                is_again = True
                outcome = breaker.abandoned
                until_s = clock() + pause_s
                while clock() < until_s:
                    if cancelled():
                        return "stop"
                    wait(_LOOK_S)
    finally:
        if outcome == breaker.abandoned and clock() - began_s >= SILENT_S:
            outcome = _failing(breaker, ServerError(_F.SILENT), is_sure=False)
        outcome()


def _nothing() -> None:
    """The outcome of a request that is known already."""


def _failing(breaker: CircuitBreaker, error: ServerError, is_sure: bool) -> Callable[[], None]:
    return lambda: breaker.failed(error, is_sure)
