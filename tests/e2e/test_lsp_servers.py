"""An editor's session with a model on a server: its answers, the status, and the key, which is
nowhere else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.cli.daemon import show
from codespec.config import load_settings
from codespec.daemon import control
from tests.e2e.conftest import PATIENT, Home, Spawn
from tests.scripted_server import ScriptedServer, completion, models, scripted_server

KEY = "sk-0123456789abcdefghij"
TEXT = "def f():\n    fi\n\n\nx = 1\n"
ROUTE = "/v1/completions"
DOWN = "the server does not work: no suggestions until it does"


@pytest.fixture
def server(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    (tmp_path / "key").write_text(KEY)
    routes = {"/v1/models": models(), ROUTE: completion(["rst()\n"])}
    with scripted_server(routes) as running:
        monkeypatch.setenv("CODESPEC_MODEL_TARGET", running.url)
        monkeypatch.setenv("CODESPEC_SERVER_KEY_FILE", str(tmp_path / "key"))
        yield running


def test_a_session(server: ScriptedServer, home: Home, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(home.workspace, options=PATIENT)
    numbers = iter(range(1000))

    def said() -> str:
        """The suggestion in a file that was not there before."""
        uri = (home.workspace / f"a{next(numbers)}.py").as_uri()
        client.open(uri, TEXT)
        items = client.complete(uri, 1, 6)
        return items[0]["insertText"] if items else ""

    assert said() == "rst()"
    client.wait_for_status("Normal", "ready: qwen2.5-coder")
    assert server.exchanges[-1].headers["Authorization"] == f"Bearer {KEY}"

    server.routes[ROUTE] = lambda exchange: exchange.answer({"error": "no"}, 500)
    assert said() == ""
    client.wait_for_status("Warning", DOWN)
    report = control.status(load_settings())
    assert report is not None
    assert (report.state, report.reason) == ("ready", DOWN)
    n_asked = len(server.asked(ROUTE))
    assert said() == ""
    assert len(server.asked(ROUTE)) <= n_asked + 2, "at most the one that tries it again"

    server.routes[ROUTE] = completion(["rst()\n"])
    for _ in range(600):
        if said():
            break
        threading.Event().wait(0.05)
    client.wait_for_status("Normal", "ready: qwen2.5-coder")
    assert client.close() == 0
    kept = [path for path in home.path.rglob("*") if path.is_file() and path.name != "key"]
    assert any(path.suffix == ".log" for path in kept)
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_the_status_tells_of_a_server_that_went_away_before_anybody_asks_for_text(
    server: ScriptedServer, home: Home, spawn: Spawn
) -> None:
    client = spawn()
    client.initialize(home.workspace, options=PATIENT)
    client.wait_for_status("Normal", "ready: qwen2.5-coder")

    def told(*options: str) -> str:
        done = CliRunner().invoke(main, ["daemon", "status", *options])
        assert done.exit_code == 0, done.output
        return done.output

    lines = told().splitlines()
    assert lines[0] == "ready"
    assert "server    asked just now: it answers" in lines
    assert json.loads(told("--json"))["server_trouble"] == ""
    n_asked = len(server.exchanges)
    server.routes["/v1/models"] = lambda exchange: exchange.answer({"error": "no"}, 502)
    lines = told().splitlines()
    assert lines[0] == "ready: the server does not work: status 502"
    assert "server    asked just now: the server does not work: status 502" in lines
    assert [e.raw for e in server.exchanges[n_asked:]] == [b""] * (len(server.exchanges) - n_asked)
    server.stop()
    said = json.loads(told("--json"))
    assert said["state"] == "ready"
    assert said["server_trouble"] == "the server does not answer: nothing listens there"
    assert client.close() == 0


def test_a_server_that_comes_later_is_known_then(
    server: ScriptedServer, home: Home, spawn: Spawn, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its model's name, context and prompt: in the editor's status, and in the daemon's."""
    server.routes["/v1/models"] = lambda exchange: exchange.answer({"error": "no"}, 503)
    client = spawn()
    client.initialize(home.workspace, options=PATIENT)
    client.wait_for_status("Warning", DOWN)
    report = control.status(load_settings())
    assert report is not None
    assert (report.model, report.backend, report.figures.n_ctx) == (server.url, "", 0)
    show(report, as_json=False)
    assert f"model     {server.url}, not asked yet\n" in capsys.readouterr().out

    server.routes["/v1/models"] = models(max_model_len=4096)
    uri = (home.workspace / "a.py").as_uri()
    client.open(uri, TEXT)
    for _ in range(600):
        if client.complete(uri, 1, 6):
            break
        threading.Event().wait(0.1)
    client.wait_for_status("Normal", "ready: qwen2.5-coder")
    report = control.status(load_settings())
    assert report is not None
    prompt = "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"
    assert (report.model, report.model_path) == ("qwen2.5-coder", server.url)
    assert (report.figures.n_ctx, report.figures.fim_prompt) == (4096, prompt)
    show(report, as_json=False)
    said = capsys.readouterr().out
    assert f"model     qwen2.5-coder, {report.backend} ({server.url})\n" in said
    assert f"4096 tokens of context; fills in the middle: {prompt}\n" in said
    assert client.close() == 0


def test_an_editor_names_no_server(server: ScriptedServer, home: Home, spawn: Spawn) -> None:
    """Settings that it may have from a repository are not taken, and no text is sent."""
    with scripted_server({"/v1/models": models()}) as other:
        client = spawn()
        client.initialize(home.workspace, options={**PATIENT, "model": {"target": other.url}})
        error = client.wait_for_status("Error", "no editor and no workspace may name a server")
        assert "settings file" in error["message"]
        client.open((home.workspace / "a.py").as_uri(), TEXT)
        assert client.complete((home.workspace / "a.py").as_uri(), 1, 6) == []
        assert client.close() == 0
        assert other.exchanges == []
    assert server.exchanges == []
