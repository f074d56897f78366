"""What the suites of all editors share. `make test-editors` runs them; where an editor cannot be
installed its tests are skipped and say why."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from codespec.daemon.lock import holder
from tests.e2e.conftest import wait_until_gone

from .install import Unavailable

T = TypeVar("T")

HERE = Path(__file__).parent
ARTIFACTS = HERE.parent.parent / "artifacts" / "editors"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            # Not counting fixtures: the first one that needs an editor installs it.
            item.add_marker(pytest.mark.timeout(120, func_only=True))


def installed(install: Callable[[], T]) -> T:
    """For a fixture of an editor: what `install` returns, or a skip with the reason."""
    try:
        return install()
    except Unavailable as e:
        pytest.skip(str(e))


def daemon_pids(run: Path) -> list[int]:
    """Of the daemons whose locks lie below this folder: one for each choice of settings."""
    pids = map(holder, run.rglob("daemon-*.lock"))
    return [pid for pid in pids if pid is not None]


def end_daemons(run: Path) -> None:
    """As `codespec daemon stop` does: a language server that is about to end would start one anew
    that was killed."""
    for pid in daemon_pids(run):
        os.kill(pid, signal.SIGTERM)
        wait_until_gone(pid)


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Screenshots and logs that outlive the run; not in Git."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return ARTIFACTS
