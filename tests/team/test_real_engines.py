"""Two real vLLM behind HAProxy: one is killed while editors ask, and brought back."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from codespec.config import Settings, load_settings
from codespec.engine.local import LocalEngine
from codespec.engine.served import ServedEngine
from codespec.requests import CompletionRequest
from codespec_bench.demo import index
from codespec_bench.maintainers.team_engine import DRAFTER, N_DRAFTED, TeamEngine
from tests.editors.install import Unavailable

from .conftest import MODEL, REPOSITORY, WORKSPACE
from .engine_routers import free_port, routed

N_WORKSPACES = 8
PATIENCE_S = 300.0
NEEDED_BYTES = 8 << 30
DRAFTING = {"method": "custom_class", "model": DRAFTER, "num_speculative_tokens": N_DRAFTED}
SERVING = {"workspaces": {WORKSPACE: str(REPOSITORY)}, "default": WORKSPACE, "budget_ms": 100}
PREFIX = "import os\n\n\ndef read_all(path):\n    with open("


class RealEngines:
    """Two engines, each on its port."""

    def __init__(self, team: TeamEngine) -> None:
        self._team = team
        self.ports = list[int]()
        self._running: dict[int, ExitStack] = {}

    def start(self, port: int) -> None:
        stack = self._running[port] = ExitStack()
        stack.enter_context(self._team.running(f"routed-{port}", DRAFTING, SERVING, port=port))

    def kill(self, port: int) -> None:
        """Kill an engine with the workers that it started, as a machine that ends does."""
        (engine,) = (p for p in psutil.Process().children() if str(port) in p.cmdline())
        for process in (engine, *engine.children(recursive=True)):
            process.kill()
        self._running.pop(port).close()

    def close(self) -> None:
        for stack in self._running.values():
            stack.close()


@pytest.fixture
def real(team: TeamEngine) -> Generator[RealEngines]:
    if psutil.virtual_memory().available < NEEDED_BYTES:
        pytest.skip(f"two engines take {NEEDED_BYTES >> 30} GiB of memory")
    index(REPOSITORY, Settings())
    with closing(RealEngines(team)) as engines:
        for _ in range(2):  # an engine takes ports for itself: the next one's is chosen after
            engines.ports.append(free_port())
            engines.start(engines.ports[-1])
        yield engines


@pytest.mark.timeout(1800)
def test_a_real_engine_that_is_killed_costs_no_answer(real: RealEngines, tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            url = stack.enter_context(routed("haproxy", real.ports, tmp_path))
        except Unavailable as e:
            pytest.skip(str(e))
        given = {
            "model": {"target": f"{url}/v1", "draft": ""},
            "server": {"tokenizer": str(MODEL)},
        }
        engine = ServedEngine(load_settings(given, env={}), LocalEngine)
        stack.callback(engine.close)

        def text(n: int) -> str:
            request = CompletionRequest(
                f"{PREFIX.replace('path', f'path_{n}')}", path=f"/w{n}/a.py", workspace=f"/w{n}",
                language_id="python", max_tokens=16, verbatim=True, deadline_ms=60_000.0,
            )  # fmt: skip
            main = engine.main
            assert main is not None
            main.remembers = False
            return engine.complete(request).text

        before = [text(n) for n in range(N_WORKSPACES)]
        assert all(before)
        answers = list[tuple[int, str]]()
        done = threading.Event()

        def ask() -> None:
            while not done.is_set():
                for n in range(N_WORKSPACES):
                    answers.append((n, text(n)))

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            _until(lambda: len(answers) >= 2)
            real.kill(real.ports[0])
            n_then = len(answers)
            _until(lambda: len(answers) >= n_then + 3 * N_WORKSPACES)
        finally:
            done.set()
            asking.join()
        # One answer may have been under way when the engine ended.
        wrong = [(n, said) for n, said in answers if said != before[n]]
        assert len(wrong) <= 1, Counter(wrong)
        assert all(before[n].startswith(said) for n, said in wrong)
        real.start(real.ports[0])
        assert [text(n) for n in range(N_WORKSPACES)] == before


def _until(so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not so():
        assert time.monotonic() < until
        time.sleep(0.05)
