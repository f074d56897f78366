"""Fixtures of the suite with real engines: `make test-team` runs it, apart from `make test`."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from codespec.config import Settings
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec_bench.demo import index
from codespec_bench.engine_client import EngineClient
from codespec_bench.maintainers.team_engine import N_DRAFTED, TeamEngine
from codespec_bench.served_places import ServedPlace, served_places

from .hostile_drafter import FAULT_FILE
from .llama_server import llama_server

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1] / "codespec" / "serving"
WORKSPACE = "ours"
N_TOKENS = 24
MODEL = bundled(BUNDLED_TARGET)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            # Not counting fixtures: the first one installs vLLM, and an engine starts in minutes.
            item.add_marker(pytest.mark.timeout(600, func_only=True))


@pytest.fixture(scope="session")
def team() -> TeamEngine:
    made = TeamEngine()
    made.install()
    return made


@pytest.fixture(scope="session")
def fault_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that makes the engine's drafter misbehave."""
    file = tmp_path_factory.mktemp("hostile") / "fault"
    file.write_text("")
    return file


@pytest.fixture(scope="session")
def port(team: TeamEngine, fault_file: Path) -> Generator[int, None, None]:
    """An engine whose drafter can be made to misbehave."""
    index(REPOSITORY, Settings())
    drafting = {
        "method": "custom_class",
        "model": "hostile_drafter.HostileVllmDrafter",
        "num_speculative_tokens": N_DRAFTED,
    }
    settings = {"workspaces": {WORKSPACE: str(REPOSITORY)}, "budget_ms": 100, "threads": 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FAULT_FILE, str(fault_file))
        with team.running("test", drafting, settings, (str(HERE),)) as found:
            yield found


@pytest.fixture(scope="session")
def client(port: int) -> EngineClient:
    """Its requests are drafted for."""
    return EngineClient(port, WORKSPACE)


@pytest.fixture(scope="session")
def places() -> list[ServedPlace]:
    return served_places(REPOSITORY, 4)


@pytest.fixture(scope="session")
def plain(port: int, places: list[ServedPlace]) -> list[list[int]]:
    """Tokens of the same engine without drafts."""
    run = EngineClient(port, WORKSPACE, drafts=False).run(places, N_TOKENS)
    assert run.drafted == 0
    return run.tokens


@pytest.fixture(scope="session")
def llama() -> Generator[str, None, None]:
    """The URL of a llama-server with the bundled model."""
    with llama_server(MODEL) as url:
        yield url
