"""Several editors at once, each of which types, asks and takes back; and one for long."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import psutil

from tests.e2e.conftest import Home, Spawn, daemon_of, report_of, until
from tests.e2e.test_lsp_storm import insert, storm
from tests.reliability.amount import amount, chance, tell
from tests.rpc import LspClient

N_EDITORS = 8
URI = "file:///project/long.py"
MIB = 1 << 20


def test_of_eight_editors_no_reply_is_lost_or_doubled(home: Home, spawn: Spawn) -> None:
    rng = chance()
    seeds = [rng.randrange(1 << 32) for _ in range(N_EDITORS)]
    n_requests = max(amount(200) // N_EDITORS, 1)

    def work(seed: int) -> None:
        editor = spawn()
        editor.initialize(home.workspace, options={"index": {"enabled": False}})
        storm(editor, n_requests, random.Random(seed))
        assert editor.close() == 0

    with daemon_of(home, "ok"), ThreadPoolExecutor(N_EDITORS) as pool:
        list(pool.map(work, seeds))
        until(lambda: report_of(home.settings).n_clients <= 1)
        report = report_of(home.settings)
        assert report.n_respawns == 0


def test_keys_leave_no_memory_behind(scripted: LspClient, home: Home) -> None:
    """Typed text is deleted again; half of the keys warm the server up."""
    n_keys = amount(400)
    daemon = report_of(home.settings)
    assert daemon.worker_pid is not None
    pids = {"server": scripted.process.pid, "daemon": daemon.pid, "worker": daemon.worker_pid}
    before: dict[str, tuple[int, int]] = {}
    scripted.open(URI, "x")
    n_chars = 1
    for n in range(n_keys):
        if n == n_keys // 2:
            before = {name: size_of(pid) for name, pid in pids.items()}
        if n_chars == 80:
            scripted.change(URI, n + 2, {"text": "x"})
            n_chars = 1
        else:
            scripted.change(URI, n + 2, insert(n_chars, "abc_.( "[n % 7]))
            n_chars += 1
        scripted.complete(URI, 0, n_chars, n % 2 == 0)
    for name, pid in pids.items():
        n_bytes, n_open = size_of(pid)
        tell(**{f"{name}_grew_kib": round((n_bytes - before[name][0]) / 1024, 1)})
        assert n_bytes - before[name][0] <= 2 * MIB, name
        assert n_open <= before[name][1], name


def size_of(pid: int) -> tuple[int, int]:
    process = psutil.Process(pid)
    return process.memory_info().rss, process.num_fds()
