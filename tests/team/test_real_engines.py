"""Two real vLLM behind HAProxy: each is killed in its turn while editors ask, and brought back."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import psutil
import pytest

from codespec.config import Settings, load_settings
from codespec.engine.local import LocalEngine
from codespec.engine.served import ServedEngine
from codespec.requests import CompletionRequest
from codespec_bench.demo import index
from codespec_bench.engine_client import EngineClient
from codespec_bench.maintainers.team_engine import DRAFTER, N_DRAFTED, TeamEngine
from tests.editors.install import Unavailable

from .conftest import MODEL, REPOSITORY, WORKSPACE
from .engine_routers import free_port, routed

N_WORKSPACES = 8
N_EDITORS = 3
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


class Editor:
    """An editor that asks for one workspace after the other. Its requests are answered where
    `answers` has as many."""

    def __init__(self, url: str) -> None:
        given = {
            "model": {"target": f"{url}/v1", "draft": ""},
            "server": {"tokenizer": str(MODEL)},
        }
        self.n_asked = 0
        self.answers = list[tuple[int, str]]()
        self._engine = ServedEngine(load_settings(given, env={}), LocalEngine)

    def ask(self, n: int) -> str:
        request = CompletionRequest(
            f"{PREFIX.replace('path', f'path_{n}')}", path=f"/w{n}/a.py", workspace=f"/w{n}",
            language_id="python", max_tokens=16, verbatim=True, deadline_ms=60_000.0,
        )  # fmt: skip
        main = self._engine.main
        assert main is not None
        main.remembers = False
        return self._engine.complete(request).text

    def type_until(self, done: threading.Event) -> None:
        while not done.is_set():
            for n in range(N_WORKSPACES):
                self.n_asked += 1
                self.answers.append((n, self.ask(n)))

    def close(self) -> None:
        self._engine.close()


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


@pytest.mark.timeout(3600)
def test_real_engines_that_are_killed_in_turn_cost_no_answer(
    real: RealEngines, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        try:
            url = stack.enter_context(routed("haproxy", real.ports, tmp_path))
        except Unavailable as e:
            pytest.skip(str(e))
        editors = [stack.enter_context(closing(Editor(url))) for _ in range(N_EDITORS)]
        before = [editors[0].ask(n) for n in range(N_WORKSPACES)]
        assert all(before)
        done = threading.Event()
        threads = [threading.Thread(target=each.type_until, args=(done,)) for each in editors]

        def wait_for(n_more: int) -> None:
            """Wait until each editor has so many more answers."""
            wanted = [len(each.answers) + n_more for each in editors]
            _until(
                lambda: all(len(each.answers) >= n for each, n in zip(editors, wanted, strict=True))
            )

        for thread in threads:
            thread.start()
        try:
            for port in real.ports:
                wait_for(2)
                real.kill(port)
                wait_for(2 * N_WORKSPACES)
                real.start(port)
                _until(partial(_works, EngineClient(port)))
        finally:
            done.set()
            for thread in threads:
                thread.join()
        answers = [answer for each in editors for answer in each.answers]
        assert len(answers) == sum(each.n_asked for each in editors)
        # One answer of each editor may have been under way when an engine ended.
        wrong = [(n, said) for n, said in answers if said != before[n]]
        print(f"{len(answers)} requests, {len(wrong)} of them answered in part or empty")
        assert len(wrong) <= len(real.ports) * N_EDITORS, Counter(wrong)
        assert all(before[n].startswith(said) for n, said in wrong)
        assert [editors[0].ask(n) for n in range(N_WORKSPACES)] == before


def _works(engine: EngineClient) -> bool:
    """True once it answers completions, which come through the router alone."""
    return engine.counters()["steps"] > 0


def _until(so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not so():
        assert time.monotonic() < until
        time.sleep(0.05)
