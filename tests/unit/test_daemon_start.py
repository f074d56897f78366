"""A daemon that does not come up: a clear error, soon, with the end of its log."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from codespec.config import Settings
from codespec.daemon import spawn, wire
from codespec.daemon.address import address_of
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.client import connect_or_start
from codespec.daemon.lock import FileLock
from codespec.errors import DaemonError
from codespec.requests import CompletionRequest


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def broken_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    script.write_text(
        "#!/bin/sh\necho spawned >> \"$0.runs\"\necho 'No module named x' >&2\nexit 1\n"
    )
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))


def test_a_daemon_that_dies_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_python(tmp_path, monkeypatch)
    monkeypatch.setattr(spawn, "_TAKEOFF_S", 0.1)
    address = address_of(Settings())
    with pytest.raises(DaemonError, match="ended while starting") as caught:
        connect_or_start(address, Settings())
    assert "No module named x" in caught.value.hint
    assert str(address.log) in caught.value.hint
    assert (tmp_path / "python.runs").read_text().count("spawned") == 1
    # The next client may try again.
    assert FileLock(address.start_lock).acquire()


@pytest.mark.asyncio
async def test_clients_of_event_loops_are_told_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken_python(tmp_path, monkeypatch)
    monkeypatch.setattr(spawn, "_TAKEOFF_S", 0.1)
    states: list[wire.StateChanged] = []
    client = AsyncClient(Settings(), states.append)
    with pytest.raises(DaemonError, match="ended while starting") as caught:
        await client.ask(CompletionRequest("a", deadline_ms=2e4))
    await client.close()
    for told in (caught.value.hint, states[-1].hint, caplog.text):
        assert str(address_of(Settings()).log) in told
        assert "No module named x" in told


def test_a_client_waits_for_the_one_that_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_python(tmp_path, monkeypatch)
    monkeypatch.setattr(spawn, "_TIMEOUT_S", 0.1)
    address = address_of(Settings())
    other_client = FileLock(address.start_lock)
    assert other_client.acquire()
    started = time.monotonic()
    with pytest.raises(DaemonError, match="did not start within"):
        connect_or_start(address, Settings())
    assert time.monotonic() - started >= 0.1
    assert not (tmp_path / "python.runs").exists()
    other_client.release()


def test_no_python_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(DaemonError, match="cannot start the daemon"):
        connect_or_start(address_of(Settings()), Settings())


def test_the_daemon_lives_where_its_clients_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told the folder, whatever becomes of the login session meanwhile."""
    broken_python(tmp_path, monkeypatch)
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\necho "$CODESPEC_RUNTIME_DIR" > "$0.runs"\nexit 1\n')
    monkeypatch.setattr(spawn, "_TAKEOFF_S", 0.1)
    monkeypatch.delenv("CODESPEC_RUNTIME_DIR")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    (tmp_path / "session").mkdir(mode=0o700)
    address = address_of(Settings())
    with pytest.raises(DaemonError):
        connect_or_start(address, Settings())
    assert (tmp_path / "python.runs").read_text().strip() == str(address.lock.parent)
