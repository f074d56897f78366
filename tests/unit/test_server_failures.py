"""Failures of a server: retries, and the circuit breaker."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import pytest

from codespec.backends.generators import Stream
from codespec.backends.remote.failures import (
    MAX_PAUSE_S,
    PAUSE_S,
    SILENT_S,
    CircuitBreaker,
    ServerError,
    ServerFailure,
    guarded,
    of_exception,
    of_status,
)

Step = bytes | ServerFailure | ServerError
"""A piece of text, or the failure that ends the answer."""


class Clock:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


class Script:
    """A server that answers as is written, one list of steps a request."""

    def __init__(self, *answers: list[Step]) -> None:
        self.answers = list(answers)
        self.n_asked = 0
        self.answer_s = 0.0
        """Seconds until it answers, or fails."""
        self.clock = Clock()
        self.breaker = CircuitBreaker(self.clock)

    def _ask(self) -> Stream:
        self.n_asked += 1
        self.clock.wait(self.answer_s)
        for step in self.answers.pop(0):
            if isinstance(step, bytes):
                yield step
            else:
                raise step if isinstance(step, ServerError) else ServerError(step)
        return "stop"

    def said(
        self, left_s: float = 10.0, cancelled: Callable[[], bool] = lambda: False
    ) -> tuple[bytes, str]:
        """(text, finish) of one request."""
        due_s = self.clock() + left_s
        text = b""
        stream = guarded(
            self._ask,
            self.breaker,
            cancelled,
            lambda: due_s - self.clock(),
            clock=self.clock,
            wait=self.clock.wait,
        )
        while True:
            try:
                piece = next(stream)
            except StopIteration as end:
                return text, end.value
            assert isinstance(piece, bytes)
            text += piece


F = ServerFailure
PASSING = [f for f in F if f.may_pass]
LASTING = [f for f in F if not f.may_pass]


@pytest.mark.parametrize("failure", PASSING)
def test_what_may_pass_is_tried_once_more(failure: ServerFailure) -> None:
    server = Script([failure], [b"x = 1"])
    assert server.said() == (b"x = 1", "stop")
    assert (server.n_asked, server.breaker.trouble) == (2, "")
    server = Script([failure], [failure], [b"never"])
    with pytest.raises(ServerError):
        server.said()
    assert (server.n_asked, server.breaker.trouble) == (2, failure.text)


@pytest.mark.parametrize("failure", LASTING)
def test_what_lasts_is_not_tried_again(failure: ServerFailure) -> None:
    server = Script([failure], [b"never"])
    with pytest.raises(ServerError, match=failure.text):
        server.said()
    assert server.n_asked == 1


def test_nothing_is_tried_again_after_text() -> None:
    server = Script([b"x = ", F.CUT_OFF], [b"y"])
    assert server.said() == (b"x = ", "deadline"), "what is finished of it counts"
    assert (server.n_asked, server.breaker.trouble) == (1, ""), "another engine may answer next"
    assert server.said() == (b"y", "stop")


def test_a_server_that_finishes_no_answer_is_left_alone() -> None:
    cut: list[Step] = [b"x = ", F.CUT_OFF]
    server = Script(cut, cut, [b"y"], cut, cut, cut, [b"never"])
    for _ in range(5):
        server.said()
        assert server.breaker.trouble == ""
    server.said()
    assert server.breaker.trouble == F.CUT_OFF.text
    with pytest.raises(ServerError):
        server.said()
    assert server.n_asked == 6


def test_nothing_is_tried_again_beyond_the_deadline() -> None:
    server = Script([F.BROKEN], [b"never"])
    with pytest.raises(ServerError):
        server.said(left_s=0.01)
    assert server.n_asked == 1


def test_a_server_says_when_to_ask_again() -> None:
    server = Script([of_status(429, "2")], [b"x"])
    asked_s = server.clock()
    assert server.said() == (b"x", "stop")
    assert server.clock() - asked_s >= 2
    server = Script([of_status(429, "30")], [b"x"])
    with pytest.raises(ServerError, match=F.BUSY.text):
        server.said()
    server.clock.wait(29)
    with pytest.raises(ServerError):
        server.said()
    server.clock.wait(2)
    assert server.said() == (b"x", "stop")
    assert server.n_asked == 2
    assert of_status(429, "9" * 5000).retry_after_s == MAX_PAUSE_S
    assert of_status(429, "Wed, 21 Oct 2015 07:28:00 GMT").retry_after_s == 0


def test_nobody_is_asked_while_the_circuit_is_open() -> None:
    down: list[Step] = [F.UNREACHABLE]
    server = Script(*[down] * 5, [b"x"])
    with pytest.raises(ServerError):
        server.said()
    n_asked = server.n_asked
    for _ in range(20):
        with pytest.raises(ServerError, match=F.UNREACHABLE.text):
            server.said()
    assert server.n_asked == n_asked
    # After the pause one request tries it; then the pause is twice as long.
    server.clock.wait(PAUSE_S + 0.1)
    with pytest.raises(ServerError):
        server.said()
    assert server.n_asked == n_asked + 2
    server.clock.wait(PAUSE_S + 0.1)
    with pytest.raises(ServerError):
        server.said()
    assert server.n_asked == n_asked + 2
    server.clock.wait(PAUSE_S)
    assert server.said() == (b"x", "stop")
    assert server.breaker.trouble == ""


def test_one_request_tries_it_and_the_others_do_not_wait() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    breaker.failed(ServerError(F.BROKEN))
    clock.wait(PAUSE_S)
    breaker.enter()
    with pytest.raises(ServerError):
        breaker.enter()
    assert breaker.trouble == F.BROKEN.text, "until it is known"
    # The user typed on, and nothing is known of the server.
    breaker.abandoned()
    breaker.enter()
    breaker.succeeded()
    breaker.enter()
    assert breaker.trouble == ""


def test_an_open_circuit_keeps_nothing_of_the_requests() -> None:
    breaker = CircuitBreaker(Clock())
    breaker.failed(ServerError(F.BROKEN))
    lengths = list[int]()
    for _ in range(3):
        with pytest.raises(ServerError) as raised:
            breaker.enter()
        lengths.append(len(raised.traceback))
    assert len({*lengths}) == 1


def test_pauses_have_an_end() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    for _ in range(2000):
        breaker.failed(ServerError(F.UNREACHABLE))
    clock.wait(MAX_PAUSE_S)
    breaker.enter()


@pytest.mark.parametrize(("failure", "after_s"), [(F.REFUSED, 2 * SILENT_S), (F.SILENT, 0.0)])
def test_what_one_request_may_be_blamed_for_has_to_happen_again(
    failure: ServerFailure, after_s: float
) -> None:
    """A refused request, and a server that said nothing by a deadline that was short."""
    server = Script([failure], [failure], [b"x"], [failure], [failure], [failure])
    server.answer_s = after_s

    def fails() -> None:
        with pytest.raises(ServerError):
            server.said()

    fails()
    fails()
    assert server.said() == (b"x", "stop")
    for _ in range(3):
        assert server.breaker.trouble == ""
        fails()
    assert server.breaker.trouble == failure.text


def test_a_server_that_said_nothing_by_the_deadline_fails_at_once() -> None:
    server = Script([F.SILENT])
    server.answer_s = SILENT_S
    with pytest.raises(ServerError):
        server.said(left_s=SILENT_S)
    assert server.breaker.trouble == F.SILENT.text


@pytest.mark.parametrize(("waited_s", "trouble"), [(SILENT_S / 10, ""), (SILENT_S, F.SILENT.text)])
def test_a_server_that_says_nothing_fails_where_somebody_waited(
    waited_s: float, trouble: str
) -> None:
    """Requests that the next key cancels say nothing about it."""
    clock = Clock()
    breaker = CircuitBreaker(clock)

    def ask() -> Stream:
        clock.wait(waited_s)
        yield from ()
        return "stop"

    for _ in range(3):
        stream = guarded(ask, breaker, lambda: True, lambda: 10.0, clock=clock)
        assert list(stream) == []
    assert breaker.trouble == trouble


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (301, F.REDIRECT),
        (307, F.REDIRECT),
        (400, F.REFUSED),
        (401, F.WRONG_KEY),
        (403, F.WRONG_KEY),
        (404, F.WRONG_PATH),
        (413, F.REFUSED),
        (429, F.BUSY),
        (500, F.BROKEN),
        (502, F.BROKEN),
        (204, F.BROKEN),
    ],
)
def test_statuses_are_failures(status: int, failure: ServerFailure) -> None:
    error = of_status(status)
    assert error.failure is failure
    assert str(status) in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ConnectionRefusedError(111, "refused"), F.UNREACHABLE),
        (socket.gaierror(-2, "Name or service not known"), F.UNREACHABLE),
        (OSError(113, "No route to host"), F.UNREACHABLE),
        (TimeoutError(), F.SILENT),
        (ConnectionResetError(), F.CUT_OFF),
        (BrokenPipeError(), F.CUT_OFF),
        (ssl.SSLCertVerificationError(1, "self-signed certificate"), F.UNPROVEN),
        (ssl.SSLEOFError(8, "EOF occurred"), F.CUT_OFF),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), F.UNPROVEN),
    ],
)
def test_exceptions_are_failures(error: OSError, failure: ServerFailure) -> None:
    assert of_exception(error).failure is failure
