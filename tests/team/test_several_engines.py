"""Several engines behind a router: one is killed, stopped or brought back, and no editor notices
more than a late answer. The engines are scripted, in processes of their own; the routers are real.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from codespec.config import Settings, load_settings
from codespec.engine.local import LocalEngine
from codespec.engine.served import ServedEngine
from codespec.requests import Completion, CompletionRequest
from tests.editors.install import Unavailable

from .engine_routers import certificate_in, free_port, routed
from .scripted_engine import ENDLESS, FULL, KEY, TEXT

N_WORKSPACES = 24
N_EDITORS = 4
PATIENCE_S = 60.0
ROOT = Path(__file__).parents[2]


class Engines:
    """Three engines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ports = [free_port() for _ in range(3)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for port in self.ports:
            self.start(port)

    def start(self, port: int) -> None:
        command = [sys.executable, "-m", "tests.team.scripted_engine", str(port)]
        self._processes[port] = subprocess.Popen([*command, str(self._log(port))], cwd=ROOT)
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    return
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)

    def send(self, port: int, what: signal.Signals) -> None:
        self._processes[port].send_signal(what)
        if what == signal.SIGKILL:
            self._processes[port].wait()

    def log(self, port: int) -> list[dict[str, str]]:
        file = self._log(port)
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def homes(self, since: dict[int, int]) -> dict[str, set[int]]:
        """Engines by workspace, of completions since these numbers of lines."""
        found: dict[str, set[int]] = {}
        for port in self.ports:
            for line in self.log(port)[since[port] :]:
                if line["path"] == "/v1/completions":
                    found.setdefault(line["session"], set()).add(port)
        return found

    def now(self) -> dict[int, int]:
        return {port: len(self.log(port)) for port in self.ports}

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _log(self, port: int) -> Path:
        return self._folder / f"{port}.jsonl"


class Desk:
    """A router before three engines, and editors that ask through it."""

    def __init__(self, kind: str, engines: Engines, url: str, settings: Settings) -> None:
        self.kind, self.engines, self.url = kind, engines, url
        self._settings = settings
        self._lock = threading.Lock()
        self.answers = list[Completion]()
        self.n_asked = 0

    def engine(self) -> ServedEngine:
        return ServedEngine(self._settings, LocalEngine)

    def round(self) -> dict[str, set[int]]:
        """Ask once for each workspace; the engines of each."""
        since = self.engines.now()
        with closing(self.engine()) as engine:
            for n in range(N_WORKSPACES):
                until = time.monotonic() + PATIENCE_S
                while self._ask(engine, n).text != TEXT:
                    assert time.monotonic() < until
                    time.sleep(0.05)
        return self.engines.homes(since)

    def type_until(self, done: threading.Event) -> Iterator[threading.Thread]:
        """Editors that ask one request after the other."""
        for first in range(N_EDITORS):
            thread = threading.Thread(target=self._type, args=(first, done))
            thread.start()
            yield thread

    def _type(self, first: int, done: threading.Event) -> None:
        with closing(self.engine()) as engine:
            while not done.is_set():
                for n in range(first, N_WORKSPACES, N_EDITORS):
                    self._ask(engine, n)

    def _ask(self, engine: ServedEngine, n: int) -> Completion:
        with self._lock:
            self.n_asked += 1
            asked = self.n_asked
        request = CompletionRequest(
            f"# {asked}\ndef f():\n    fi", "\n\nx = 1\n", path=f"/w{n}/a.py", workspace=f"/w{n}",
            language_id="python", max_tokens=64, deadline_ms=3000.0,
        )  # fmt: skip
        answer = engine.complete(request)
        with self._lock:
            self.answers.append(answer)
        return answer


@pytest.fixture(params=["haproxy", "vllm-router"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Desk]:
    with ExitStack() as stack:
        engines = stack.enter_context(closing(Engines(tmp_path)))
        try:
            url = stack.enter_context(routed(request.param, engines.ports, tmp_path, KEY))
        except Unavailable as e:
            pytest.skip(str(e))
        (tmp_path / "key").write_text(KEY)
        model = {"target": f"{url}/v1", "draft": ""}
        completion = {"deadline_auto_ms": 3000.0, "linger_ms": 0.0}
        server = {"key_file": str(tmp_path / "key"), "family": "qwen"}
        given = {"model": model, "completion": completion, "server": server}
        yield Desk(request.param, engines, url, load_settings(given, env={}))


def check_homes(before: dict[str, set[int]], now: dict[str, set[int]], dead: int) -> None:
    """The workspaces of the engine that is gone moved, and no others."""
    assert len(before) == N_WORKSPACES
    assert all(len(ports) == 1 for ports in (*before.values(), *now.values()))
    assert dead not in set.union(*now.values())
    assert {w: p for w, p in now.items() if before[w] != {dead}} == {
        w: p for w, p in before.items() if p != {dead}
    }


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_an_engine_that_goes_costs_no_answer_and_gets_its_workspaces_back(
    desk: Desk, how: signal.Signals
) -> None:
    engines = desk.engines
    before = desk.round()
    victim = next(iter(Counter(min(ports) for ports in before.values())))
    done = threading.Event()
    threads = list(desk.type_until(done))

    def wait_for(n: int) -> None:
        wanted, until = len(desk.answers) + n, time.monotonic() + PATIENCE_S
        while len(desk.answers) < wanted:
            assert time.monotonic() < until, "the editors wait"
            time.sleep(0.01)

    try:
        wait_for(50)
        engines.send(victim, how)
        wait_for(200)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(desk.answers) == desk.n_asked
    texts = Counter((answer.text or answer.detail) for answer in desk.answers)
    n_short = sum(n for text, n in texts.items() if text != TEXT)
    if how == signal.SIGKILL:  # what had begun when the engine went may be shorter
        assert n_short <= N_EDITORS, texts
        assert all(TEXT.startswith(text) for text in texts), texts
    check_homes(before, desk.round(), victim)
    if how == signal.SIGKILL:
        engines.start(victim)
    else:
        engines.send(victim, signal.SIGCONT)
    until = time.monotonic() + PATIENCE_S
    while desk.round() != before:
        assert time.monotonic() < until, "its workspaces did not come back"


def test_a_client_that_leaves_ends_its_request_on_the_engine(desk: Desk) -> None:
    told = threading.Event()
    request = CompletionRequest(
        f"# {ENDLESS}\nfi", path="/w0/a.py", workspace="/w0", max_tokens=1000, verbatim=True
    )
    with closing(desk.engine()) as engine:
        engine.complete(request, told.is_set, lambda _: told.set())
    until = time.monotonic() + PATIENCE_S
    while not any(
        line.get("left") for port in desk.engines.ports for line in desk.engines.log(port)
    ):
        assert time.monotonic() < until
        time.sleep(0.01)


def asked(url: str, path: str, session: str = "") -> int:
    headers = {"Authorization": f"Bearer {KEY}", "X-Session-Id": session}
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers)) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


@pytest.mark.parametrize("desk", ["haproxy"], indirect=True)
def test_haproxy_takes_workspaces_where_their_completions_go_and_nothing_else(desk: Desk) -> None:
    homes = desk.round()
    since = desk.engines.now()
    for session in homes:
        assert asked(desk.url, "/codespec/workspaces", session) == 200
    for port in desk.engines.ports:
        for line in desk.engines.log(port)[since[port] :]:
            assert homes[line["session"]] == {port}
    for session in homes:
        assert asked(desk.url, FULL, session) == 507
    assert desk.round() == homes, "a full disk takes no engine out"
    for path in ("/metrics", "/health", "/docs", "/", "/v1", "/codespecs/x", "/tokenizes"):
        assert asked(desk.url, path) == 404


def test_an_editor_comes_in_by_tls(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    with ExitStack() as stack:
        engines = stack.enter_context(closing(Engines(tmp_path)))
        try:
            pem = certificate_in(tmp_path)
            routed_by_tls = routed("haproxy", engines.ports, tmp_path, KEY, pem)
            url = stack.enter_context(routed_by_tls)
        except Unavailable as e:
            pytest.skip(str(e))
        server = {"key_file": str(tmp_path / "key"), "ca_file": str(pem), "family": "qwen"}
        given = {"model": {"target": f"{url}/v1", "draft": ""}, "server": server}
        engine = ServedEngine(load_settings(given, env={}), LocalEngine)
        stack.callback(engine.close)
        request = CompletionRequest(
            "def f():\n    fi", "\n\nx = 1\n", path="/w/a.py", workspace="/w", max_tokens=64
        )
        assert engine.complete(request).text == TEXT
        assert len(engines.homes(dict.fromkeys(engines.ports, 0))) == 1
