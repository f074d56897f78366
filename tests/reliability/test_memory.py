"""A worker that takes more memory than its models need is ended, and people are told why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.daemon.client import DaemonEngine
from codespec.daemon.worker_memory import own_bytes
from codespec.requests import CompletionRequest
from tests.e2e.conftest import Home, report_of
from tests.e2e.conftest import home as home
from tests.e2e.conftest import shared_cache as shared_cache

MIB = 1 << 20
HUNGRY = '''
from codespec.drafters import registry
from codespec.drafters.base import Drafter
from codespec.types import NO_DRAFT


class Hungry(Drafter):
    """Takes memory, and keeps it, for a document that says so: little at a time, as a worker that
    gets nowhere counts as hung."""

    name = "hungry"

    def __init__(self, site):
        self._site, self._taken, self._eats = site, [], False

    def begin(self, context):
        self._eats = b"# eat" in self._site.tokenizer.decode(context.left)

    def propose(self, state, n_max):
        if self._eats and len(self._taken) < 88:
            self._taken += [b"x" * (16 << 20) for _ in range(4)]
        return NO_DRAFT


registry.register("hungry", Hungry)
'''


@pytest.fixture
def hungry(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A drafter is installed that takes 1.4 GB."""
    about = tmp_path / "site" / "hungry-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hungry\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[codespec.drafters]\nhungry = hungry_drafter\n")
    (tmp_path / "site" / "hungry_drafter.py").write_text(HUNGRY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("CODESPEC_DRAFTING_DRAFTERS", "lookup,hungry")
    monkeypatch.setenv("CODESPEC_DRAFTING_ADAPTIVE", "false")
    return home


def test_what_takes_too_much_is_ended_and_told(hungry: Home) -> None:
    def said(*arguments: str) -> str:
        return CliRunner().invoke(main, list(arguments)).output

    request = CompletionRequest("def f(x):\n    ", path="", deadline_ms=6e4, max_tokens=8)
    with DaemonEngine(hungry.settings) as engine:
        assert engine.complete(request).trace.model
        worker = report_of(hungry.settings).worker_pid
        while not report_of(hungry.settings).n_respawns:  # it may be through before anybody looks
            engine.complete(CompletionRequest(f"# eat\n{request.prefix}", deadline_ms=6e4))
        assert engine.complete(request).trace.model  # with the next worker
    report = report_of(hungry.settings)
    assert report.worker_pid != worker
    assert report.n_respawns == 1
    assert "took too much memory" in report.last_end
    assert "for everything else" in report.last_end
    for text in (said("daemon", "status"), said("doctor", "--quick"), said("daemon", "logs")):
        assert "took too much memory" in text


MAPPING = """
import mmap, os, sys
from codespec.daemon.worker_memory import MemoryBudget
from codespec.daemon.wire import Ready
file, mib = sys.argv[1], 1 << 20
pid = os.getpid()
budget = MemoryBudget.of(pid, Ready(model="", model_path="", backend="", file_bytes=64 * mib), 0, 0)
budget = MemoryBudget(budget.loaded, 0, 32 * mib)
with open(file, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
    assert sum(mapped[at] for at in range(0, 64 * mib, 4096)) == 0
    assert budget.why_over(pid) == "", budget.why_over(pid)
    taken = b"x" * (48 * mib)
    if sys.platform != "darwin":  # whose allowance holds the file, too
        assert "took too much memory" in budget.why_over(pid), budget
"""


def test_a_mapped_file_is_no_memory_of_its_own(tmp_path: Path) -> None:
    """Models and indexes are mapped; how much of them is there is the system's decision. In a
    process that gives nothing back meanwhile."""
    file = tmp_path / "model.gguf"
    with file.open("wb") as f:
        f.truncate(64 * MIB)
    done = subprocess.run(
        [sys.executable, "-c", MAPPING, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_process_that_is_gone_takes_nothing() -> None:
    assert own_bytes(2**22 + 1) == 0
