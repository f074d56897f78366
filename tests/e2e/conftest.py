"""Folders of their own for each test, and no process left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from codespec.config import Settings, load_settings
from codespec.daemon import control, wire
from codespec.daemon.address import address_of
from codespec.daemon.client import try_connect
from codespec.daemon.lock import holder
from tests import scripted_daemon
from tests.engines import strict_engine
from tests.rpc import LspClient

TIMEOUT_S = 60.0
CODE = "import os\n\n\ndef read_file(path):\n    with open(\n\n\ndef main():\n    pass\n"
CURSOR = (4, 14)
PATIENT = {"completion": {"deadline_invoked_ms": 30_000}, "index": {"enabled": False}}


@dataclass(frozen=True)
class Home:
    """A user's home. `settings`: what a process started here would load."""

    path: Path
    workspace: Path

    @property
    def settings(self) -> Settings:
        return load_settings()

    def daemon_pids(self) -> list[int]:
        locks = (self.path / "run").glob("daemon-*.lock")
        return [pid for pid in map(holder, locks) if pid is not None]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine's measured costs stay valid from test to test."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def home(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Environment of this process and its children. CODESPEC_MODEL_* stay as they are, to run
    these tests with another model than the bundled one."""
    for name in list(os.environ):
        if name.startswith("CODESPEC_") and not name.startswith("CODESPEC_MODEL_"):
            monkeypatch.delenv(name)
    for name, folder in (
        ("HOME", "home"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "xdg-cache"),
        ("XDG_DATA_HOME", "data"),
        ("CODESPEC_RUNTIME_DIR", "run"),
    ):
        (tmp_path / folder).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(shared_cache))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    yield Home(tmp_path, workspace)
    # By the folder that daemons are told, not by their locks: one that was started a moment ago, by
    # whoever has ended since, has none yet.
    run = str(tmp_path / "run")
    # Until there is none: one that is killed may have started another since it was looked for.
    while pids := _with_argument(run):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            wait_until_gone(pid)


def _with_argument(word: str) -> list[int]:
    return [p.pid for p in psutil.process_iter(["cmdline"]) if word in (p.info["cmdline"] or ())]


Spawn = Callable[[], LspClient]


@pytest.fixture
def spawn(home: Home) -> Iterator[Spawn]:
    clients: list[LspClient] = []

    def start() -> LspClient:
        clients.append(LspClient(os.environ, home.workspace))
        return clients[-1]

    yield start
    for client in clients:
        client.kill()


@contextlib.contextmanager
def daemon_of(home: Home, *how: str) -> Generator[None]:
    """A daemon with a scripted engine, see `scripted_worker`."""
    daemon = subprocess.Popen([sys.executable, scripted_daemon.SCRIPT, *how], cwd=home.path)
    address = address_of(home.settings)

    def listens() -> bool:
        connection = try_connect(address)
        if connection is not None:
            connection.close()
        return connection is not None

    try:
        until(listens)
        yield
    finally:
        daemon.terminate()
        daemon.wait(TIMEOUT_S)


@pytest.fixture
def scripted(home: Home, spawn: Spawn) -> Iterator[LspClient]:
    """An editor on a daemon whose engine does what the text before the cursor says."""
    with daemon_of(home, "ok"):
        client = spawn()
        client.initialize(home.workspace, options=PATIENT)
        client.wait_for_status("Normal", "ready")
        yield client
        assert client.ended or client.close() == 0


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["insertText"] for item in items]


def until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


def cheapen_passes(settings: Settings, cache: Path) -> None:
    """Make every draft pay: on a busy machine the measured costs may say that nothing does. cache:
    the folder that CODESPEC_CACHE_DIR names."""
    with closing(strict_engine(settings)) as engine:
        engine.settle()
    curves = cache / "curves.json"
    cheap = {"points": {"1": 1.0, "32": 1.1}}
    measured = json.loads(curves.read_text())
    curves.write_text(json.dumps({key: curve | cheap for key, curve in measured.items()}))


def report_of(settings: Settings) -> wire.StatusReport:
    """The status of the daemon that runs."""
    report = control.status(settings)
    assert report is not None
    return report


def wait_until_gone(pid: int | None) -> None:
    assert pid is not None
    give_up_at = time.monotonic() + TIMEOUT_S
    while is_alive(pid):
        assert time.monotonic() < give_up_at, f"process {pid} does not end"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """A zombie, where nobody reaps orphans, is not, but while other threads of its still end, which
    keep its sockets open."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform != "linux":
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False
