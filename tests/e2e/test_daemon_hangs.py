"""A daemon that is there and says nothing: clients get a clear error, soon, and their answers again
once it goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from codespec.daemon import async_client, control, wire
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.client import DaemonEngine
from codespec.errors import DaemonError
from codespec.requests import CompletionRequest

from .conftest import TIMEOUT_S, Home, daemon_of

REQUEST = CompletionRequest("a", "b")
PATIENT = CompletionRequest("a", "b", deadline_ms=TIMEOUT_S * 1e3, document="doc")


@pytest.fixture
def pid(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Process id of a daemon whose clients have short time limits."""
    for name in ("HELLO_S", "SILENCE_S"):
        monkeypatch.setattr(wire, name, 0.3)
    monkeypatch.setattr(async_client, "_RETRY_S", 0.0)
    with daemon_of(home, "ok"):
        found = control.status(home.settings)
        assert found is not None
        yield found.pid


@contextmanager
def stopped(pid: int) -> Generator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_command_line_is_told(home: Home, pid: int) -> None:
    told = pytest.raises(DaemonError, match=f"process {pid}")
    with stopped(pid), told as refused:
        DaemonEngine(home.settings)
    assert "restart" in refused.value.hint
    with DaemonEngine(home.settings) as engine:
        with stopped(pid), told:
            engine.complete(REQUEST)
        assert engine.complete(REQUEST).text == "[a|b]"


@pytest.mark.asyncio
async def test_editors_are_told(home: Home, pid: int) -> None:
    states: list[wire.StateChanged] = []
    editor = AsyncClient(home.settings, states.append)
    assert (await editor.complete(PATIENT)).text == "[a|b]"
    with stopped(pid):
        soon = CompletionRequest("a", "b", deadline_ms=50, document="doc")
        assert (await editor.complete(soon)).finish == "deadline"
        with pytest.raises(DaemonError, match=f"process {pid}"):
            await editor.ask(PATIENT)
        assert states[-1].state == "failed"
        assert f"process {pid}" in states[-1].reason
        n_states = len(states)
        with pytest.raises(DaemonError, match=f"process {pid}"):  # who connects anew
            await editor.ask(PATIENT)
        assert {state.state for state in states[n_states:]} == {"failed"}
    assert (await editor.complete(PATIENT)).text == "[a|b]"
    assert states[-1].state == "ready"
    await editor.close()
