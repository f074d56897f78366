"""A process that holds source leaves no copy of its memory behind when it crashes, and does not
work in the workspace; what happened is told all the same."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from codespec.daemon import control
from codespec.daemon.health import cpu_seconds, resident_bytes
from codespec.system.processes import away, module_command
from tests.e2e.conftest import CODE, CURSOR, PATIENT, Home, Spawn, report_of, until, wait_until_gone
from tests.e2e.conftest import home as home
from tests.e2e.conftest import shared_cache as shared_cache
from tests.e2e.conftest import spawn as spawn

if sys.platform == "win32":
    pytest.skip("there are no core files", allow_module_level=True)

import resource

CRASHES = (signal.SIGABRT, signal.SIGSEGV)


@pytest.fixture(autouse=True)
def dumps_are_wanted(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The user has `ulimit -c unlimited`, and works in a clone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("core files are forbidden here")
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    (home.workspace / ".git").mkdir()
    monkeypatch.chdir(home.workspace)
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.mark.parametrize("number", CRASHES)
def test_a_child_that_crashes_is_not_dumped(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "crash.py").write_text(f"import os; os.kill(os.getpid(), {number.value})\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    child = subprocess.Popen(module_command("crash"), env=env)
    _, status = os.waitpid(child.pid, 0)
    child.returncode = 0  # waited for
    assert os.WTERMSIG(status) == number
    assert not os.WCOREDUMP(status)


def cores(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*core*") if path.is_file()]


def parsers_of(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children()
    return []


@pytest.mark.parametrize("number", CRASHES)
def test_all_that_an_editor_starts(home: Home, spawn: Spawn, number: signal.Signals) -> None:
    (home.workspace / "a.py").write_text(CODE)
    before = set(cores(home.path, Path(away())))
    client = spawn()
    options = {**PATIENT, "index": {"enabled": True}}
    client.initialize(home.workspace, options=options)
    uri = (home.workspace / "b.py").as_uri()
    client.open(uri, CODE)
    assert client.complete(uri, *CURSOR)
    server = client.process.pid

    def indexers() -> list[psutil.Process]:
        return [p for p in psutil.Process(server).children() if "--watch" in p.cmdline()]

    until(lambda: bool(indexers()) and bool(parsers_of(indexers()[0].pid)))
    indexer = indexers()[0].pid
    report = report_of(home.settings)
    parts = {
        "language server": server,
        "indexer": indexer,
        "parser": parsers_of(indexer)[0].pid,
        "daemon": report.pid,
        "worker": report.worker_pid,
    }
    assert report.memory_bytes > 1 << 20
    for name, pid in parts.items():
        assert resident_bytes(pid) > 1 << 20, name
        assert cpu_seconds(pid) > 0, name
        with contextlib.suppress(psutil.AccessDenied):  # nobody may look, as nobody dumps it
            assert not Path(psutil.Process(pid).cwd()).is_relative_to(home.workspace), name
        if sys.platform == "linux":
            assert psutil.Process(pid).rlimit(psutil.RLIMIT_CORE) == (0, 0), name
    folder = control.logs(home.settings)[0].parent

    def is_told(words: str) -> bool:
        return any(words in path.read_text("utf-8") for path in folder.iterdir())

    for name, pid in reversed(parts.items()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        wait_until_gone(pid)
        if name == "worker":
            until(lambda: is_told(f"killed by {number.name}"))
            assert is_told("Fatal Python error")
    client.kill()
    assert set(cores(home.path, Path(away()))) == before
