"""Neovim in two versions, and desks to use it at: a home, a workspace and a daemon of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.editors.conftest import daemon_pids, end_daemons, installed

from .editor import Editor
from .install import SUITES, Neovim, install

# Machines are shared: what is tested is what is suggested, not how soon, and suggestions alone.
PATIENT = (
    "settings={completion={deadline_auto_ms=60000, deadline_invoked_ms=60000}}, next_edits=false"
)

Start = Callable[..., Editor]


@dataclass(frozen=True)
class Desk:
    """path: of all that belongs to this user; the workspace is a repository in it."""

    path: Path
    cache: Path

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"

    @property
    def env(self) -> dict[str, str]:
        folders = {
            f"XDG_{name}_HOME": str(self.path / name)
            for name in ("CONFIG", "CACHE", "STATE", "DATA")
        }
        return {
            **folders,
            "XDG_CONFIG_DIRS": str(self.path / "none"),
            "XDG_DATA_DIRS": str(self.path / "none"),
            "HOME": str(self.path),
            "CODESPEC_CACHE_DIR": str(self.cache),
            "CODESPEC_RUNTIME_DIR": str(self.path / "run"),
            "CODESPEC_MODEL_N_THREADS": "1",
        }

    def daemon_pids(self) -> list[int]:
        return daemon_pids(self.path / "run")

    def empty(self) -> None:
        """Leave no file in the workspace."""
        for path in self.workspace.iterdir():
            if path.is_file():
                path.unlink()

    def file(self, name: str, text: str) -> Path:
        path = self.workspace / name
        path.write_bytes(text.encode())
        return path


def set_up(path: Path, cache: Path) -> Desk:
    desk = Desk(path, cache)
    (desk.workspace / ".git").mkdir(parents=True)
    (path / "run").mkdir(mode=0o700)
    return desk


def clear_up(desk: Desk) -> None:
    end_daemons(desk.path / "run")


@pytest.fixture(scope="session")
def measured_costs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache folder that desks share: measuring the machine takes seconds."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def shared_desk(tmp_path_factory: pytest.TempPathFactory, measured_costs: Path) -> Iterator[Desk]:
    desk = set_up(tmp_path_factory.mktemp("desk"), measured_costs)
    yield desk
    clear_up(desk)


@pytest.fixture
def desk(shared_desk: Desk) -> Desk:
    """With a daemon that may run already, and an empty workspace."""
    shared_desk.empty()
    return shared_desk


@pytest.fixture
def own_desk(tmp_path: Path, measured_costs: Path) -> Iterator[Desk]:
    """A desk on which nothing has ever run."""
    desk = set_up(tmp_path, measured_costs)
    yield desk
    clear_up(desk)


@pytest.fixture(scope="session", params=sorted(SUITES))
def neovim(request: pytest.FixtureRequest) -> Neovim:
    return installed(lambda: install(request.param))


@pytest.fixture(scope="session")
def newest() -> Neovim:
    """The newest Neovim, for tests that do not depend on the version."""
    return installed(lambda: install(max(SUITES)))


@pytest.fixture
def editors() -> Iterator[list[Editor]]:
    """Those open in a test; closed after it."""
    opened: list[Editor] = []
    yield opened
    for editor in opened:
        editor.close()


@pytest.fixture
def start(editors: list[Editor]) -> Start:
    """An editor at a desk: start(neovim, desk, "options in Lua, without the braces")."""

    def begin(neovim: Neovim, desk: Desk, options: str = PATIENT) -> Editor:
        editors.append(Editor(neovim, desk.env, desk.workspace, f"{{{options}}}"))
        return editors[-1]

    return begin
