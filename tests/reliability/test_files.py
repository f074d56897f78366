"""Files that codespec keeps are for their owner alone; what others put in its way leads nowhere."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespec.daemon.address import address_of
from codespec.daemon.logs import last_lines
from codespec.models.bundled_pair import BUNDLED_DRAFT, bundled
from codespec.system.folders import cache_path
from codespec.usage.statistics import Stats
from tests.e2e.command_line import codespec, error
from tests.e2e.conftest import CODE, CURSOR, Home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a profile is its user's there")


@pytest.fixture
def open_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home whose user lets others read what is made in it, with no folder of ours there yet."""
    monkeypatch.delenv("CODESPEC_CACHE_DIR")
    monkeypatch.delenv("CODESPEC_RUNTIME_DIR")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    (home.workspace / "a.py").write_text(CODE)
    before = os.umask(0o022)
    yield home
    os.umask(before)


def use(home: Home) -> None:
    """Everything that keeps something."""
    place = f"{home.workspace / 'a.py'}:{CURSOR[0] + 1}:{CURSOR[1] + 1}"
    codespec("index", home.workspace)
    codespec("complete", "--daemon", place)
    codespec("complete", place)
    codespec("models", "add", home.path / "model.gguf")
    codespec("stats")
    codespec("daemon", "stop", "--all")
    stats = Stats()
    stats.shown("1", "python", 10, 1.0)
    stats.flush()


def ours(home: Home) -> list[Path]:
    tops = [home.path / name / "codespec" for name in ("xdg-cache", "state", "data")]
    return [*tops, *(path for top in tops for path in top.rglob("*"))]


def open_to_others(paths: list[Path]) -> list[str]:
    modes = [(path, stat.S_IMODE(path.lstat().st_mode)) for path in paths]
    return [f"{mode:o} {path}" for path, mode in modes if mode & 0o077]


def test_files_are_for_their_owner_alone(open_home: Home) -> None:
    (open_home.path / "model.gguf").write_bytes(bundled(BUNDLED_DRAFT).read_bytes())
    use(open_home)
    made = ours(open_home)
    names = {path.name for path in made} | {path.suffix for path in made}
    wanted = {"acceptance", "manifest.json", ".seg", ".sym", ".lock", ".log", "models.json"}
    assert names >= wanted | {"stats.db", "run", "CACHEDIR.TAG"}
    assert open_to_others(made) == []

    # As an earlier version left them.
    run = cache_path() / "run"
    for path in made:
        if path != run:
            path.chmod(0o755 if path.is_dir() else 0o644)
    use(open_home)
    assert open_to_others(ours(open_home)) == []


@pytest.mark.parametrize("name", ["log", "lock", "start_lock"])
def test_a_link_in_the_way_is_not_followed(home: Home, name: str) -> None:
    (home.workspace / "a.py").write_text(CODE)
    theirs = home.path / "theirs"
    theirs.write_text("theirs")
    path: Path = getattr(address_of(home.settings), name)
    path.symlink_to(theirs)
    said = error("complete", "--daemon", f"{home.workspace / 'a.py'}:1:1")
    assert str(path) in said
    assert "Remove it." in said
    assert theirs.read_text() == "theirs"


@pytest.mark.parametrize("name", ["log", "lock", "start_lock"])
def test_nobody_waits_for_a_pipe_in_the_way(home: Home, name: str) -> None:
    (home.workspace / "a.py").write_text(CODE)
    path: Path = getattr(address_of(home.settings), name)
    os.mkfifo(path)
    assert str(path) in error("complete", "--daemon", f"{home.workspace / 'a.py'}:1:1")
    assert last_lines(path, 5) == []
