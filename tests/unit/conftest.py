"""What several files of unit tests begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.index_support import Workspace, isolate


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty one, with a cache folder and a home of its own."""
    isolate(monkeypatch, tmp_path)
    return Workspace(tmp_path / "w")
