"""The HTTP front follows the settings file, without being started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from codespec.config import Settings, load_settings
from codespec.daemon import current_client, wire
from codespec.daemon.current_client import CurrentClient

pytestmark = pytest.mark.asyncio


class Client:
    """In place of the daemon's."""

    made: list[Client]

    def __init__(self, settings: Settings, on_state: Callable[[wire.StateChanged], None]) -> None:
        self.target, self.on_state = settings.model.target, on_state
        self.is_connected = self.is_closed = False
        self.made.append(self)

    def connect(self) -> None:
        self.is_connected = True

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config.toml"
    file.write_text("")
    monkeypatch.setenv("CODESPEC_CONFIG", str(file))
    monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("CODESPEC_MODEL_TARGET", raising=False)
    monkeypatch.setattr(current_client, "_LOOK_S", 0.0)
    monkeypatch.setattr(current_client, "AsyncClient", Client)
    Client.made = []
    return file


async def test_a_changed_setting_holds_for_the_next_request(config: Path) -> None:
    daemon = CurrentClient(load_settings())
    for n in (7, 12):
        config.write_text(f"[completion]\nmax_tokens = {n}\n")
        with daemon.client() as client:
            assert daemon.settings.completion.max_tokens == n
            assert client is Client.made[0]
    config.unlink()
    daemon.connect()
    assert "no such file" in daemon.why_outdated
    assert daemon.settings.completion.max_tokens == 12
    await daemon.close()


async def test_another_model_is_another_daemon(config: Path) -> None:
    daemon = CurrentClient(load_settings())
    with daemon.client() as first, daemon.client():
        Client.made[0].on_state(wire.StateChanged(state="ready", model="old"))
        config.write_text('[model]\ntarget = "/m.gguf"\n')
        with daemon.client() as second:
            before, after = Client.made
            assert (first, second) == (before, after)
            assert after.target == "/m.gguf"
            assert after.is_connected
            assert daemon.state.state == "starting"
        # What is asked of the old one is answered; what becomes of it is of no interest.
        await asyncio.sleep(0)
        assert not before.is_closed
        before.on_state(wire.StateChanged(state="stopping"))
        assert daemon.state.state == "starting"
    await asyncio.sleep(0)
    assert before.is_closed
    assert not after.is_closed
    await daemon.close()
    assert after.is_closed


async def test_a_file_that_cannot_be_used_changes_nothing(config: Path) -> None:
    daemon = CurrentClient(load_settings())
    config.write_text("[completion]\nmax_tokens = 7\n")
    daemon.connect()
    for wrong in ("[completion]\nmax_token = 9\n", "[completion\n"):
        config.write_text(wrong)
        daemon.connect()
        assert str(config) in daemon.why_outdated
        assert daemon.settings.completion.max_tokens == 7
    config.write_text("[completion]\nmax_tokens = 9\n")
    daemon.connect()
    assert daemon.why_outdated == ""
    assert daemon.settings.completion.max_tokens == 9
    assert len(Client.made) == 1
    await daemon.close()
