"""`codespec index` that is killed at times nobody chose: all of it, or one of its processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.e2e.command_line import codespec
from tests.e2e.conftest import Home, until
from tests.reliability.amount import amount, chance, tell
from tests.reliability.test_index_gone import folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")

N_FILES = 30


def processes_of(session: int) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def edit(home: Home, generation: int) -> None:
    for i in range(N_FILES):
        lines = f"def function_{i}_{generation}(x):\n    return x + {generation}\n\n\n" * 30
        (home.workspace / f"f{i}.py").write_text(lines)


def test_an_index_stays_whole(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(home.path / "cache"))
    edit(home, 0)
    codespec("index", home.workspace)
    rng = chance()
    n_killed = {"all of it": 0, "one of its processes": 0, "was done before": 0}
    # A build takes about so long, and as long again for what it imports.
    longest_s = 1.5
    for n in range(1, amount(2) + 1):
        edit(home, n)
        with subprocess.Popen(
            [sys.executable, "-m", "codespec", "index", str(home.workspace), "--quiet"],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(rng.uniform(0.1, longest_s))
            if process.poll() is not None:
                n_killed["was done before"] += 1
            elif n % 2:
                n_killed["all of it"] += 1
                os.killpg(process.pid, signal.SIGKILL)
            else:
                n_killed["one of its processes"] += 1
                with contextlib.suppress(IndexError, psutil.Error):
                    rng.choice(processes_of(process.pid)).kill()
            process.wait()
            until(lambda session=process.pid: not processes_of(session))
        codespec("index", "--verify", "--no-repair", home.workspace)
        report, *_ = codespec("index", "--json", home.workspace)
        assert json.loads(report)["n_files"] == N_FILES
        assert not list(folder().glob("*.tmp"))
    tell(**n_killed)
