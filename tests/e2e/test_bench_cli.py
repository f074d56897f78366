"""The smaller benchmarks from the command line, with the bundled model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from codespec.backends.llama import kernels
from codespec.cost.cost_curve import CostCurve


def bench(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "codespec", "bench", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_measured_curve_serves_the_replay(tmp_path: Path) -> None:
    saved = tmp_path / "curve.json"
    kept = tmp_path / "results"
    done = bench(
        *("curve", "--context", 32, "--context", 64, "--repeats", 1),
        *("--json", "--save", saved, "--output", kept),
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    whose = ["llama.cpp", *filter(None, [kernels.NAME])]
    assert [(row["kernels"], row["n_context"]) for row in rows] == [
        (name, n_context) for name in whose for n_context in (32, 64)
    ]
    assert [json.loads(line) for line in kept.read_text().splitlines()] == rows
    assert rows[0]["n"][0] == 1
    assert rows[0]["ratio"][0] == 1.0

    from bench.replay_report import load_curve

    curve = load_curve(str(saved))
    assert isinstance(curve, CostCurve)
    assert list(curve.points) == rows[-1]["n"]


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """A repository whose second commit repeats what the first one says."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*args: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(folder), *who, *args], check=True, capture_output=True)

    lines = "".join(f"    total_{i} = compute_value(first_{i}, second_{i})\n" for i in range(12))
    git("init", "-q")
    (folder / "a.py").write_text("def f():\n" + lines)
    git("add", ".")
    git("commit", "-qm", "one")
    (folder / "a.py").write_text("def f():\n" + lines + "\n\ndef g():\n" + lines)
    git("commit", "-qam", "two")
    return folder


def test_keys_are_typed_for_a_model(edited: Path) -> None:
    done = bench("replay", edited, "--keys", 5)
    assert done.returncode == 2
    assert "--keys goes with --model" in done.stderr


def test_latency_of_keys_through_server_and_daemon(edited: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    done = bench(
        *("latency", edited, "--keys", 16, "--pace", 0.5, "--threads", 1, "--json"),
        *("--output", results),
    )
    assert done.returncode == 0, done.stderr
    *warm, cold = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["config"] for row in (*warm, cold)] == ["Neovim", "VS Code", "start"]
    assert 0 < cold["initialize_ms"] < cold["first_answer_ms"]
    for row in warm:
        assert row["n_keys"] >= 16
        assert row["n_indexed_tokens"] > 0
        # At the first keys of the hunk, nothing is there to be typed along.
        assert row["n_generations"] > 0
        assert {"memory_mib_server", "memory_mib_worker"} <= set(row)
        for kind in (k for k, values in row["samples"].items() if values):
            assert row[f"{kind}_ms_p50"] <= row[f"{kind}_ms_p95"]
        known = {"prefix", "suffix", "repository", "edits", "answers", "draft-model"}
        assert row["by_source"].keys() <= known
        answers = sum(len(row["samples"][k]) for k in ("suggestion", "typed_through", "nothing"))
        assert answers + row["n_unanswered"] == row["n_requests"]
        for a, d in row["by_position"]:
            assert a <= d
    assert len(results.read_text().splitlines()) == 3


def test_peers_say_what_is_missing_and_how_it_compares(edited: Path, tmp_path: Path) -> None:
    done = bench(
        *("peers", edited, "--quick", "--places", 1, "--threads", 1, "--draft-model", "none"),
        *("--json", "--output", tmp_path / "results"),
        LLAMA_SERVER="", PATH="/usr/bin:/bin",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "left out: llama-server: llama-server is not installed. Build it" in done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["workload"] for row in rows} == {"edits", "fresh"}
    assert {"plain", "codespec", "prompt lookup"} <= {row["config"] for row in rows}
    for row in rows:
        named = {"config", "workload", "tok_per_s", "ratio_to_plain", "mat", "accepted", "drafted"}
        assert named <= set(row)
        assert not {name for name in row if name.endswith(("_low", "_high"))}, "of one request"
        assert row["accepted"] <= row["drafted"]
        assert row["n_threads"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_what_is_ended_leaves_nothing_behind(edited: Path, tmp_path: Path, number: str) -> None:
    """Neither a daemon with its model, nor a server that would start one, nor a folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    # A name of its own in the environment of all that it starts, and where that is hidden from us,
    # in what the daemon is told.
    env = {**os.environ, "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "codespec", "bench", "hop", str(edited / "a.py")]

    def started() -> list[psutil.Process]:
        return [
            process
            for process in psutil.process_iter()
            if _variable(process, "TMPDIR") == str(scratch)
            or any(word.startswith(f"{scratch}{os.sep}") for word in _command(process))
        ]

    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as it:
        try:
            while not any("codespec.daemon" in _command(p) for p in started()):
                assert it.poll() is None, it.communicate()
                time.sleep(0.02)
            it.send_signal(signal.Signals[number])
            assert it.wait(60) != 0
            assert not started()
            assert not any(scratch.glob("codespec-bench-*"))
        finally:
            for process in started():
                process.kill()


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _variable(process: psutil.Process, name: str) -> str:
    try:
        return process.environ().get(name, "")
    except psutil.Error:
        return ""


def test_an_unknown_revision_is_named(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = bench("replay", tmp_path, "--until", "v0")
    assert done.returncode == 1
    assert "v0: no such commit" in done.stderr


def test_typing_in_an_indexed_workspace(tmp_path: Path) -> None:
    lines = [
        f"def function_{i}(first, second):\n    return first + {i} * scaled(second)\n"
        for i in range(40)
    ]
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "module.py").write_text("\n".join(lines))
    done = bench(
        *("hop", "--workspace", folder, "--lines", 1, "--key-ms", 0, "--rest-ms", 0),
        *("--threads", 1),
        *("--edits", 5, "--storm", 40, "--json"),
        CODESPEC_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["tokens in the indexed workspace"]["n"] > 500
    assert rows["start to the reply to initialize"]["p50_ms"] > 0
    (storm,) = (row for row in rows.values() if "n_wrong" in row)
    assert (storm["n"], storm["n_wrong"]) == (40, 0)
    # Every key's request is in one of the rows.
    kinds = ("suggestion by the model", "typed through", "nothing to suggest, by the model")
    kinds = (*kinds, "nothing to suggest, without the model", "first")
    assert sum(rows[kind]["n"] for kind in kinds if kind in rows) >= 10
    # What was changed twice is to be changed in the next line.
    edits = rows["next edit"]
    assert edits["n"] >= 3
    assert edits["n"] + rows.get("no next edit", {"n": 0})["n"] == 5
    assert min(edits["p50_ms"], rows["next edit, in the engine"]["p50_ms"]) > 0
