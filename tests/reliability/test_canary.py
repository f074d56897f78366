"""Text that is in documents and nowhere on disk: it stays so, whoever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import CODE, CURSOR, Home, Spawn, report_of, until, wait_until_gone
from tests.reliability.amount import amount

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")

CANARY = "canary_that_nobody_saved"
SIGNALS = (signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL)


def files_with(folder: Path, words: bytes) -> list[Path]:
    found: list[Path] = []
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and words in path.read_bytes():
            found.append(path)
    return found


def test_no_file_has_it(home: Home, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor the names of what is open."""
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(home.path / "cache"))
    (home.workspace / "saved.py").write_text(CODE)
    uri = (home.workspace / f"{CANARY}_path.py").as_uri()
    editor = spawn()
    editor.initialize(home.workspace, options={"completion": {"deadline_invoked_ms": 30_000}})
    editor.wait_for_status("Normal", "ready")
    editor.open(uri, CODE.replace("path", CANARY))
    for n in range(amount(1)):
        report = report_of(home.settings)
        editor.post_completion(uri, *CURSOR)
        assert report.worker_pid
        os.kill(report.worker_pid, SIGNALS[n % 3])
        until(lambda before=report.worker_pid: report_of(home.settings).worker_pid != before)
        until(lambda: report_of(home.settings).state == "ready")
        editor.change(uri, n + 2, {"text": f"{CANARY}_{n}\n" + CODE.replace("path", CANARY)})
        editor.complete(uri, CURSOR[0] + 1, CURSOR[1])
    report = report_of(home.settings)
    editor.post_completion(uri, *CURSOR)
    os.kill(report.pid, signal.SIGABRT)
    wait_until_gone(report.pid)
    editor.process.send_signal(signal.SIGABRT)
    editor.wait()
    assert CANARY not in editor.stderr.decode()
    assert files_with(home.path, CODE[:20].encode()), "what is saved is found"
    assert not files_with(home.path, CANARY.encode())
    assert not [path for path in home.path.rglob("*") if CANARY in path.name]
