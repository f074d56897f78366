"""Nothing is sent anywhere: no process of ours connects to an address of the internet protocols or
asks for one, the machine's own HTTP front apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from codespec.daemon import control
from tests.e2e.conftest import CODE, CURSOR, PATIENT, Home, Spawn, report_of, until
from tests.e2e.conftest import home as home
from tests.e2e.conftest import shared_cache as shared_cache
from tests.e2e.conftest import spawn as spawn

if sys.platform == "win32":
    pytest.skip("processes talk over the loopback there", allow_module_level=True)

WATCH = """
import os, sys
def watch(event, args):
    asked = event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.bind")
    if event in ("socket.connect", "socket.sendto", "socket.bind"):
        asked = isinstance(args[1], tuple)  # a path, where it is a socket of the file system
    if asked:
        write(f"{event} {args[1:]} {sys.argv}")
def write(line):
    with open(os.environ["WATCHED"], "a") as file:
        file.write(line + "\\n")
sys.addaudithook(watch)
write("watched " + str(os.getpid()))
"""


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lines about what every Python process that is started from now on connects to."""
    folder, found = tmp_path / "watch", tmp_path / "watched"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WATCH)
    found.touch()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("WATCHED", str(found))
    return found


def connections(watched: Path) -> list[str]:
    return [line for line in watched.read_text().splitlines() if not line.startswith("watched")]


def test_the_watch_sees_a_connection(watched: Path) -> None:
    code = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert len(connections(watched)) == 1


def test_an_editor_and_all_that_it_starts(watched: Path, home: Home, spawn: Spawn) -> None:
    (home.workspace / "a.py").write_text(CODE)
    client = spawn()
    client.initialize(home.workspace, options={**PATIENT, "index": {"enabled": True}})
    client.open((home.workspace / "b.py").as_uri(), CODE)
    assert client.complete((home.workspace / "b.py").as_uri(), *CURSOR)
    server = psutil.Process(client.process.pid)
    until(lambda: any("--watch" in child.cmdline() for child in server.children()))
    report = report_of(home.settings)
    indexers = [child.pid for child in server.children() if "--watch" in child.cmdline()]
    # The daemon is a copy of a process that starts it, and so is what watches it.
    pids = [server.pid, report.worker_pid, *indexers]
    assert all(pids)
    until(lambda: all(f"watched {pid}\n" in watched.read_text() for pid in pids))
    control.stop(home.settings)
    assert connections(watched) == []


@pytest.mark.parametrize(
    "command", [["index", "."], ["complete", "a.py:3:1"], ["models", "list"], ["doctor"]]
)
def test_the_command_line(watched: Path, home: Home, command: list[str]) -> None:
    (home.workspace / "a.py").write_text(CODE)
    done = subprocess.run(
        [sys.executable, "-m", "codespec", *command],
        cwd=home.workspace,
        env=dict(os.environ),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert watched.read_text()
    assert connections(watched) == []
