"""Fixtures of the suites of all editors. `make test-editors` runs them; if an editor cannot be
installed, its tests are skipped and say why."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from codespec.daemon.lock import holder
from tests.e2e.conftest import wait_until_gone

from .install import Unavailable

T = TypeVar("T")

HERE = Path(__file__).parent
VSCODE = "tests/editors/vscode/"
ARTIFACTS = HERE.parent.parent / "artifacts" / "editors"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            # Not counting fixtures: the first one that needs an editor installs it.
            item.add_marker(pytest.mark.timeout(120, func_only=True))


class ByEditor(LoadScopeScheduling):
    """Tests with VS Code share a browser and a window, others no more than their file."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return VSCODE if file.startswith(VSCODE) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return ByEditor(config, log)


def installed(install: Callable[[], T]) -> T:
    """The result of `install`, or a skip with the reason, for an editor's fixture."""
    try:
        return install()
    except Unavailable as e:
        pytest.skip(str(e))


def daemon_pids(run: Path) -> list[int]:
    """Process ids of the daemons whose locks lie below this folder: one for each choice of
    settings."""
    pids = map(holder, run.rglob("daemon-*.lock"))
    return [pid for pid in pids if pid is not None]


def end_daemons(run: Path) -> None:
    """End daemons as `codespec daemon stop` does: if one were killed, a language server that is
    about to end would start another."""
    for pid in daemon_pids(run):
        os.kill(pid, signal.SIGTERM)
        wait_until_gone(pid)


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Screenshots and logs that outlive the run; not in Git."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return ARTIFACTS
