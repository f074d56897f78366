"""Figures of drafts for an engine: what a replay counts, and what an engine's answers say."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codespec.errors import CodespecError
from codespec_bench.engine_client import EngineClient, EngineError, EngineRun
from codespec_bench.maintainers import team_engine
from codespec_bench.maintainers.team import OURS, PLAIN, checks_of, saved_time, table_of
from codespec_bench.maintainers.team_engine import TeamEngine
from codespec_bench.rows_replay import RowsReplay, ngram_draft
from codespec_bench.served_places import ServedPlace

PLACES = [ServedPlace(f"f{i}.py", [1, 2, i], [3]) for i in range(4)]


class ScriptedEngine(BaseHTTPRequestHandler):
    """Answers as vLLM does: each prompt goes on with its last token."""

    asked: list[Any]

    def do_GET(self) -> None:
        n = len(self.asked)
        self.answer(
            f'vllm:iteration_tokens_total_count{{model_name="m",engine="0"}} {3 * n}.0\n'
            f'vllm:iteration_tokens_total_created{{engine="0"}} 1.7e9\n'
            f'vllm:spec_decode_num_draft_tokens_total{{engine="0"}} {5 * n}.0\n'
            f'vllm:spec_decode_num_accepted_tokens_total{{engine="0"}} {2 * n}.0\n'
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body)
        tokens = [body["prompt"][-1]] * body["max_tokens"]
        self.answer(json.dumps({"choices": [{"token_ids": tokens}]}), 400 if 99 in tokens else 200)

    def answer(self, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.fixture
def engine() -> Generator[tuple[int, list[Any]], None, None]:
    """(port, bodies that were asked)"""
    asked: list[Any] = []
    handler = type("Handler", (ScriptedEngine,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_engine_is_asked_for_all_places(engine):
    port, asked = engine
    run = EngineClient(port, "w").run(PLACES, 5, at_once=3)
    assert run.tokens == [[i] * 5 for i in range(4)]
    assert (run.steps, run.drafted, run.accepted) == (12, 20, 8)
    told = sorted(body["vllm_xargs"]["codespec_path"] for body in asked)
    assert told == [place.path for place in PLACES]
    assert {body["temperature"] for body in asked} == {0}


def test_drafts_can_be_left_off(engine):
    port, asked = engine
    EngineClient(port, "w", drafts=False).run(PLACES[:1], 1)
    EngineClient(port).run(PLACES[:1], 1)
    assert asked[0]["vllm_xargs"] == {
        "codespec_workspace": "w",
        "codespec_path": PLACES[0].path,
        "codespec_draft": 0,
    }
    assert "vllm_xargs" not in asked[1]


def test_an_engine_that_refuses_is_said(engine):
    port, _ = engine
    assert EngineClient(port).is_ready()
    with pytest.raises(EngineError, match="answered 400"):
        EngineClient(port).complete([99], 1)


def test_an_engine_that_is_not_there_is_not_ready(engine):
    assert not EngineClient(1).is_ready()


def test_a_pass_emits_what_is_right_and_one_more():
    replay = RowsReplay()
    assert replay.verify([1, 2, 9], [1, 2, 3, 4]) == 3
    assert replay.verify([], [4, 5]) == 1
    assert replay.verify([5], [5]) == 1
    assert (replay.n_passes, replay.n_tokens) == (3, 5)
    assert (replay.n_drafted, replay.n_accepted) == (4, 3)


def test_the_lookup_of_engines_takes_the_first_place():
    assert ngram_draft([1, 2, 7, 8, 1, 2, 9, 1, 2]) == [7, 8, 1, 2, 9, 1, 2]
    assert ngram_draft([1, 2, 3]) == []


def test_the_table_tells_equal_texts_apart():
    def run(tokens: list[list[int]], steps: int) -> EngineRun:
        return EngineRun(tokens, steps, 10, 4, 1.0, 9.0)

    same, other = [[1, 2], [3, 4]], [[1, 2], [3, 5]]
    runs = {
        PLAIN: {key: run(same, 40) for key in ("64", "16", "at once")},
        OURS: {"64": run(same, 11), "16": run(same, 12), "at once": run(other, 13)},
    }
    cells = [list(column.cells) for column in table_of(runs, 2).columns]
    assert cells[1] == ["40", "11"]
    assert cells[-1] == ["2 and 2 of 2", "2 and 1 of 2"]


def run_of(steps: int, tokens: list[list[int]]) -> EngineRun:
    return EngineRun(tokens, steps, 10, 5, 1.0, 1.0)


def test_promises_are_checked_against_their_bounds():
    same, other = [[1, 2], [3]], [[1, 2], [4]]
    runs = {
        PLAIN: {"64": run_of(100, same), "16": run_of(50, same), "at once": run_of(30, same)},
        "ngram": {"64": run_of(50, same), "16": run_of(40, same), "at once": run_of(20, same)},
        OURS: {"64": run_of(40, same), "16": run_of(36, same), "at once": run_of(20, other)},
    }
    checks = checks_of(runs, {1: 2.5, 8: 0.9})
    assert checks == {
        "texts equal to plain, one at a time": (2, 2, True),
        "texts equal to plain, 8 at once": (1, 2, False),
        "steps by those of ngram, 64 tokens": (0.8, 0.85, True),
        "steps by those of ngram, 16 tokens": (0.9, 0.85, False),
        "times as fast, 1 at once": (2.5, 2.0, True),
        "times as fast, 8 at once": (0.9, 1.0, False),
    }


def test_time_is_compared_on_one_engine_in_turns(engine):
    port, asked = engine
    assert set(saved_time(port, PLACES, 2)) == {1, 8}
    drafts = [body["vllm_xargs"]["codespec_draft"] for body in asked]
    assert drafts == 6 * ([0] * len(PLACES) + [1] * len(PLACES))


def test_a_port_that_is_taken_is_said(engine):
    port, _ = engine
    with pytest.raises(EngineError, match=f"port {port} cannot be listened on"):
        team_engine._free(port)
    assert team_engine._free(0) > 0


def test_a_machine_that_vllm_cannot_run_on_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    free = SimpleNamespace(free=10**9)
    monkeypatch.setattr(team_engine.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(team_engine.sys, "platform", "linux")
    monkeypatch.setattr(team_engine.shutil, "disk_usage", lambda _: free)
    with pytest.raises(CodespecError, match=r"1\.0 GB are free"):
        team_engine.check_machine(tmp_path)
    free.free = 10**12
    team_engine.check_machine(tmp_path)
    monkeypatch.setattr(team_engine.sys, "platform", "darwin")
    with pytest.raises(CodespecError, match="no CPU build for darwin"):
        team_engine.check_machine(tmp_path)


def test_what_pip_does_not_find_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path))
    made = TeamEngine()
    with pytest.raises(CodespecError) as told:
        made._run(sys.executable, "-m", "pip", "no-such-command")
    assert "torch's CPU builds" in told.value.hint
