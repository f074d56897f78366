"""Tabby's agent, which its plug-ins for editors run, against the HTTP front."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Home, until
from tests.editors import node
from tests.editors.conftest import installed
from tests.editors.install import cached
from tests.http_client import Front, front_of

AGENT = "tabby-agent@1.5.0"
TEXT = "import os\n\n\ndef add(a, b):\n    return \n\n\ndef multiply(a, b):\n    return a * b\n"
KEY = "k" * 32


class Agent:
    """The agent's process. It is asked and answers in lines of JSON."""

    def __init__(self, program: Path, folder: Path) -> None:
        env = {**os.environ, "HOME": str(folder)}
        pipe = subprocess.PIPE
        command = [str(node.PROGRAM), str(program)]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, text=True)
        self._n_asked = 0

    def ask(self, function: str, *arguments: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._n_asked += 1
        question = [self._n_asked, {"func": function, "args": arguments}]
        self.process.stdin.write(f"{json.dumps(question)}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            number, answer = json.loads(line)
            if number == self._n_asked:
                return answer
        raise AssertionError("the agent ended")

    def start(self, front: Front, token: str = "") -> None:
        server = {"endpoint": f"http://127.0.0.1:{front.port}", "token": token}
        config = {"server": server, "anonymousUsageTracking": {"disable": True}}
        assert self.ask("initialize", {"config": config})


@pytest.fixture(scope="session")
def program() -> Path:
    def build(into: Path) -> None:
        node.npm("pack", AGENT, cwd=into)
        [packed] = into.glob("*.tgz")
        with tarfile.open(packed) as archive:
            archive.extractall(into, filter="data")

    root = installed(lambda: cached("tabby-agent", [AGENT, node], build))
    return root / "package/dist/cli.js"


@pytest.fixture
def agent(program: Path, tmp_path: Path) -> Iterator[Agent]:
    (tmp_path / "agent").mkdir()
    agent = Agent(program, tmp_path / "agent")
    with agent.process:
        yield agent
        agent.process.kill()


def test_it_completes_and_reports_events(agent: Agent, home: Home) -> None:
    with front_of(home.path) as front:
        until(lambda: front.ask("/health")[0] == 200)
        agent.start(front)
        until(lambda: agent.ask("getStatus") == "ready")
        assert agent.ask("getServerHealthState")["model"]
        place = {"filepath": "add.py", "language": "python", "text": TEXT, "manually": True}
        found = agent.ask("provideCompletions", {**place, "position": TEXT.index("return ") + 7})
        [choice] = found["choices"]
        assert choice["text"].strip()
        event = {"completion_id": found["id"], "choice_index": 0}
        for kind in ("view", "select", "dismiss"):
            assert agent.ask("postEvent", {"type": kind, **event}) is True
        assert agent.ask("getIssues") == []


def test_it_is_told_that_a_key_is_needed(agent: Agent, home: Home) -> None:
    (home.path / "keys").write_text(KEY)
    with front_of(home.path, "--key-file", str(home.path / "keys")) as front:
        until(lambda: front.ask("/health")[0] == 200)
        agent.start(front)
        until(lambda: agent.ask("getStatus") == "unauthorized")
        agent.ask("updateConfig", "server.token", KEY)
        until(lambda: agent.ask("getStatus") == "ready")
