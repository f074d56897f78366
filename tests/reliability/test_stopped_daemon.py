"""A daemon that a signal stopped: the command line says so, with the next step, long before it
would give up waiting for one that is merely slow."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import pytest

from codespec.config import Settings
from codespec.daemon import client, control, wire
from codespec.daemon.client import DaemonEngine
from codespec.errors import DaemonError
from codespec.requests import CompletionRequest
from tests.e2e.conftest import TIMEOUT_S, Home, daemon_of, report_of, wait_until_gone
from tests.e2e.test_daemon_hangs import stopped

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing stops a process there")

LONG = CompletionRequest("a" * 4_000_000, "b", deadline_ms=TIMEOUT_S * 1e3)
PATIENT = CompletionRequest("a", "b", deadline_ms=TIMEOUT_S * 1e3)


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who waits for a slow daemon would not be done before the test is ended."""
    for name in ("HELLO_S", "SILENCE_S"):
        monkeypatch.setattr(wire, name, 1e4)
    monkeypatch.setattr(client, "_FRAME_S", 1e4)
    monkeypatch.setattr(control, "_STOP_S", 1e4)


@pytest.mark.parametrize("ask", [control.status, control.start, DaemonEngine])
def test_who_connects_is_told(home: Home, ask: Callable[[Settings], object]) -> None:
    with daemon_of(home, "ok"):
        pid = report_of(home.settings).pid
        with stopped(pid), pytest.raises(DaemonError, match=f"process {pid}.* is stopped") as told:
            ask(home.settings)
        assert f"kill -CONT {pid}" in told.value.hint
        assert "codespec daemon restart" in told.value.hint


@pytest.mark.parametrize("request_", [PATIENT, LONG], ids=["short", "long"])
def test_who_asks_is_told(home: Home, request_: CompletionRequest) -> None:
    with daemon_of(home, "ok"), DaemonEngine(home.settings) as engine:
        pid = report_of(home.settings).pid
        with stopped(pid), pytest.raises(DaemonError, match=f"process {pid}.* is stopped"):
            engine.complete(request_)
        assert engine.complete(CompletionRequest("a", "b")).text == "[a|b]"


def test_it_can_be_ended(home: Home) -> None:
    with daemon_of(home, "ok"):
        pid = report_of(home.settings).pid
        os.kill(pid, signal.SIGSTOP)
        assert control.stop(home.settings)
        wait_until_gone(pid)


def test_one_that_is_slow_is_waited_for(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_LOOK_S", 0.0)
    with daemon_of(home, "ok"), DaemonEngine(home.settings) as engine:
        assert engine.complete(CompletionRequest("a", "b")).text == "[a|b]"
