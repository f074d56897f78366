"""Rows of the soak that are about time and memory, which are no test: what they find is told."""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from tests.e2e.conftest import CODE, CURSOR, Home, Spawn, daemon_of, report_of
from tests.reliability.amount import amount, tell
from tests.rpc import LspClient
from tests.rpc import insert as insert_at

ASKED = {"completion": {"deadline_invoked_ms": 30_000}, "index": {"enabled": False}}
PAUSE_S = 0.25
"""Between two requests of an editor."""


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def test_eight_editors_and_one(home: Home, spawn: Spawn) -> None:
    """The model says something at once: what is left is our own. In turns of one editor and eight,
    as machines have their moods."""
    n_turns = 4
    n_requests = amount(64) // (n_turns * 16)
    with daemon_of(home, "ok"):
        editors = [spawn() for _ in range(8)]
        for i, editor in enumerate(editors):
            editor.initialize(home.workspace, options=ASKED)
            editor.wait_for_status("Normal", "ready")
            editor.open(uri_of(i), "x")

        def wait(i: int, n: int) -> list[float]:
            found: list[float] = []
            due_s = time.monotonic() + PAUSE_S * i / 8
            for k in range(n):
                time.sleep(max(0.0, due_s - time.monotonic()))
                due_s += PAUSE_S
                versions[i] += 1
                editors[i].change(uri_of(i), versions[i], {"text": f"x{versions[i]} {k}"})
                began_s = time.perf_counter()
                assert editors[i].complete(uri_of(i), 0, len(f"x{versions[i]} {k}"))
                found.append((time.perf_counter() - began_s) * 1e3)
            return found

        versions = [1] * 8
        alone: list[float] = []
        together: list[float] = []
        with ThreadPoolExecutor(8) as pool:
            for _ in range(n_turns):
                alone += wait(0, 8 * n_requests)
                for found in pool.map(wait, range(8), [n_requests] * 8):
                    together += found
    one, eight = percentile(alone, 0.95), percentile(together, 0.95)
    tell(
        ms_p50_one=round(statistics.median(alone), 2),
        ms_p95_one=round(one, 2),
        ms_p50_eight=round(statistics.median(together), 2),
        ms_p95_eight=round(eight, 2),
        ratio_p95=round(eight / one, 2),
    )


def uri_of(i: int) -> str:
    return f"file:///project/{i}.py"


def ready(home: Home, spawn: Spawn) -> tuple[LspClient, str]:
    """An editor with the bundled model, which has answered."""
    editor = spawn()
    editor.initialize(home.workspace, options=ASKED)
    editor.wait_for_status("Normal", "ready")
    uri = (home.workspace / "a.py").as_uri()
    editor.open(uri, CODE)
    editor.complete(uri, *CURSOR)
    return editor, uri


def kill(home: Home, spawn: Spawn, who: str) -> None:
    """During a completion, with each signal: how long it is until that one is answered, and until
    one has a suggestion again."""
    editor, uri = ready(home, spawn)
    signals = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
    answer_ms: list[float] = []
    recovery_s: list[float] = []
    version = 1
    for n in range(amount(2)):
        report = report_of(home.settings)
        pid = report.worker_pid if who == "worker" else report.pid
        version += 1
        editor.change(uri, version, {"text": CODE.replace("path", f"path_{version}")})
        asked = editor.post_completion(uri, *CURSOR)
        time.sleep(0.01 * (n % 5))
        os.kill(pid, signals[n % 3])
        killed_s = time.perf_counter()
        assert "error" not in editor.reply(asked)
        answer_ms.append((time.perf_counter() - killed_s) * 1e3)
        while True:
            version += 1
            editor.change(uri, version, {"text": CODE.replace("path", f"path_{version}")})
            if editor.complete(uri, *CURSOR):
                break
            time.sleep(0.02)
        recovery_s.append(time.perf_counter() - killed_s)
    assert not editor.pending_replies
    tell(
        answer_ms_p50=round(statistics.median(answer_ms), 1),
        answer_ms_max=round(max(answer_ms), 1),
        recovery_s_p50=round(statistics.median(recovery_s), 2),
        recovery_s_max=round(max(recovery_s), 2),
    )
    assert editor.close() == 0


def test_worker_is_killed(home: Home, spawn: Spawn) -> None:
    kill(home, spawn, "worker")


def test_daemon_is_killed(home: Home, spawn: Spawn) -> None:
    kill(home, spawn, "daemon")


def test_memory_of_long_typing(home: Home, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten keys a second; of three windows the first warms it up."""
    monkeypatch.setenv("CODESPEC_MODEL_MAX_SAVED_KV_BYTES", "1000000")
    window_s = float(os.environ.get("SOAK_MINUTES", "0.5")) * 60 / 3
    editor, uri = ready(home, spawn)
    report = report_of(home.settings)
    pids = {"server": editor.process.pid, "daemon": report.pid, "worker": report.worker_pid}
    sizes: dict[str, list[tuple[float, int]]] = {name: [] for name in pids}
    text, version, n_keys = "", 1, 0
    began_s = time.monotonic()
    while (now_s := time.monotonic() - began_s) < 3 * window_s:
        if len(text) > 60:
            text = ""
            version += 1
            editor.change(uri, version, {"text": CODE})
        line = CODE.count("\n")
        version += 1
        key = "value_1 = f(x)."[n_keys % 15]
        editor.change(uri, version, insert_at(line, len(text), key))
        text += key
        editor.reply(editor.post_completion(uri, line, len(text), n_keys % 5 == 0))
        n_keys += 1
        for name, pid in pids.items():
            sizes[name].append((now_s, psutil.Process(pid).memory_info().rss))
        time.sleep(max(0.0, n_keys * 0.1 - (time.monotonic() - began_s)))
    assert report_of(home.settings).n_respawns == 0

    def around(name: str, at_s: float) -> float:
        near = [size for s, size in sizes[name] if abs(s - at_s) < window_s / 10]
        return statistics.median(near) / (1 << 20)

    worst = 0.0
    tell(keys=n_keys)
    for name in pids:
        sizes_mib = [around(name, i * window_s) for i in (1, 2, 3)]
        second, third = (after - before for before, after in itertools.pairwise(sizes_mib))
        worst = max(worst, second, third)
        tell(
            **{
                f"{name}_mib": round(sizes_mib[-1], 1),
                f"{name}_grew_mib_second": round(second, 2),
                f"{name}_grew_mib_third": round(third, 2),
            }
        )
    tell(grew_mib=round(worst, 2))
    assert editor.close() == 0
