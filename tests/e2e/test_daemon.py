"""The daemon as it runs: its own process, a real worker, a real model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from codespec.config import DaemonSettings, Settings, load_settings
from codespec.daemon import client, control
from codespec.daemon.address import address_of
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.client import DaemonEngine
from codespec.daemon.wire import StateChanged
from codespec.errors import DaemonError, ModelError
from codespec.models.resolve import target_path
from codespec.requests import CompletionRequest
from tests.e2e.conftest import TIMEOUT_S, Home, daemon_of, is_alive, report_of, wait_until_gone
from tests.engines import strict_engine

REQUEST = CompletionRequest(
    "import os\n\n\ndef read_file(path):\n    with open(",
    "\n\n\ndef main():\n    pass\n",
    path="/project/a.py",
    max_tokens=16,
)


@contextmanager
def stopped(pid: int) -> Generator[None]:
    """The process is frozen, as if it hung."""
    assert pid > 0, "no such process: 0 and below name whole groups, this one's among them"
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)


def kill_once(pid: int) -> Callable[[], bool]:
    """A `cancelled` that never is, but kills a process as soon as the engine waits."""
    done: list[bool] = []

    def cancelled() -> bool:
        if not done:
            done.append(True)
            os.kill(pid, signal.SIGKILL)
        return False

    return cancelled


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codespec", "daemon", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_says_what_the_engine_says(home: Home) -> None:
    local = strict_engine(home.settings)
    expected = local.complete(REQUEST)
    local.close()
    assert expected.text
    with DaemonEngine(home.settings) as engine:
        found = engine.complete(REQUEST)
        assert found.text == expected.text
        assert found.finish == expected.finish
        assert found.trace.n_tokens == expected.trace.n_tokens
        report = engine.status()
    assert report.state == "ready"
    assert report.model == found.trace.model == local.info.name
    assert report.backend == local.info.backend
    assert report.memory_bytes > local.info.file_bytes
    assert is_alive(report.pid)
    assert is_alive(report.worker_pid)


def test_a_worker_killed_during_a_completion(home: Home) -> None:
    with DaemonEngine(home.settings) as engine:
        expected = engine.complete(REQUEST).text
        first = engine.status()
        with stopped(first.worker_pid):  # so that it cannot finish before it is killed
            answer = engine.complete(REQUEST, kill_once(first.worker_pid))
        assert (answer.text, answer.finish) == ("", "empty")
        assert "SIGKILL" in answer.reason
        assert engine.complete(REQUEST).text == expected
        second = engine.status()
        assert (second.pid, second.n_respawns) == (first.pid, 1)
        assert second.worker_pid != first.worker_pid


def test_a_worker_that_hangs(home: Home) -> None:
    with daemon_of(home, "ok"), DaemonEngine(home.settings) as engine:
        expected = engine.complete(REQUEST).text
        pid = engine.status().worker_pid
        with stopped(pid):
            started = time.monotonic()
            answer = engine.complete(with_deadline(REQUEST, 100))
            assert (answer.text, answer.finish) == ("", "deadline")
            assert time.monotonic() - started < TIMEOUT_S / 4
            wait_until_gone(pid)
        assert engine.complete(REQUEST).text == expected


def with_deadline(request: CompletionRequest, deadline_ms: float) -> CompletionRequest:
    return replace(request, deadline_ms=deadline_ms)


def test_a_killed_daemon_takes_its_worker_along_and_is_started_again(home: Home) -> None:
    with DaemonEngine(home.settings) as engine:
        expected = engine.complete(REQUEST).text
        first = engine.status()
        os.kill(first.pid, signal.SIGKILL)
        wait_until_gone(first.pid)
        wait_until_gone(first.worker_pid)
        again = engine.complete(REQUEST)
        assert again.text == expected, again.reason
        assert engine.status().pid != first.pid


def test_a_daemon_killed_during_a_completion(home: Home) -> None:
    with DaemonEngine(home.settings) as engine:
        expected = engine.complete(REQUEST).text
        first = engine.status()
        with stopped(first.worker_pid):
            answer = engine.complete(REQUEST, kill_once(first.pid))
        assert (answer.text, answer.finish) == ("", "empty")
        assert "daemon ended" in answer.reason
        wait_until_gone(first.worker_pid)
        assert engine.complete(REQUEST).text == expected


def test_a_discarded_buffer_counts_no_more(home: Home) -> None:
    """It is lent to other documents until it is closed, or its editor goes."""
    settings = load_settings({"context": {"buffers": "on"}})
    lent = "def compute_total(first_item, second_item):\n    return first_item + second_item\n"
    paths = [str(home.workspace / name) for name in ("lender.py", "asker.py")]
    lender, asker = (
        replace(REQUEST, path=path, workspace=str(home.workspace), prefix=prefix, suffix="")
        for path, prefix in zip(paths, (lent, "total = compute_total(first_item, "), strict=True)
    )
    Path(paths[0]).write_text("saved = 1\n")
    with DaemonEngine(settings) as engine:
        for leave in ("close", "go"):
            # What to show is looked for anew in another line.
            asker = replace(asker, prefix="\n" + asker.prefix)
            with DaemonEngine(settings) as editor:
                editor.complete(lender)
                assert engine.complete(asker).trace.n_snippets == 1
                if leave == "close":
                    editor.closed(paths[0])
                    editor.status()  # is answered after what was said before
                    assert engine.complete(asker).trace.n_snippets == 0
            while engine.status().n_clients:
                time.sleep(0.01)
            assert engine.complete(asker).trace.n_snippets == 0


def test_clients_that_come_at_once_share_one_daemon(home: Home) -> None:
    settings = home.settings
    barrier = threading.Barrier(4)

    def ask(_: int) -> tuple[int, str]:
        barrier.wait()
        with DaemonEngine(settings) as engine:
            text = engine.complete(REQUEST).text
            return engine.status().pid, text

    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(ask, range(4)))
    assert len(answers) == 1
    assert home.daemon_pids() == [next(iter(answers))[0]]


def test_a_cancelled_request_ends_soon(home: Home) -> None:
    with DaemonEngine(home.settings) as engine:
        engine.complete(REQUEST)
        with stopped(engine.status().worker_pid):
            answer = engine.complete(REQUEST, lambda: True)
            assert (answer.text, answer.finish) == ("", "cancelled")
        assert engine.complete(REQUEST).text


def test_without_clients_it_ends(home: Home) -> None:
    settings = with_idle(home.settings, minutes=0.002)
    with DaemonEngine(settings) as engine:
        assert engine.complete(REQUEST).text
        report = engine.status()
    wait_until_gone(report.pid)
    wait_until_gone(report.worker_pid)
    assert not Path(report.address).exists()
    assert control.status(settings) is None


def with_idle(settings: Settings, minutes: float) -> Settings:
    return msgspec.structs.replace(settings, daemon=DaemonSettings(idle_minutes=minutes))


def test_start_status_restart_stop(home: Home) -> None:
    settings = home.settings
    assert control.status(settings) is None
    assert control.stop(settings) is False
    started = control.start(settings)
    assert started.state == "ready"
    assert control.start(settings).pid == started.pid
    status = control.status(settings)
    assert status is not None
    assert status.worker_pid == started.worker_pid
    restarted = control.restart(settings)
    assert restarted.state == "ready"
    assert restarted.pid != started.pid
    wait_until_gone(started.worker_pid)
    assert control.stop(settings) is True
    wait_until_gone(restarted.pid)
    wait_until_gone(restarted.worker_pid)
    assert control.status(settings) is None
    path, lines = control.logs(settings)
    assert path.is_file()
    assert "daemon ends" in lines[-1]


def test_a_daemon_that_hangs_is_stopped_all_the_same(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_STOP_S", 0.3)
    report = control.start(home.settings)
    with stopped(report.pid):
        assert control.stop(home.settings) is True
    wait_until_gone(report.worker_pid)


def test_a_daemon_that_hangs_is_not_taken_for_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_STOP_S", 0.3)
    report = control.start(home.settings)
    with stopped(report.pid), pytest.raises(DaemonError, match=f"process {report.pid}") as refused:
        control.status(home.settings)
    assert "restart" in refused.value.hint
    assert report_of(home.settings).pid == report.pid


def test_the_model_can_be_switched(home: Home, tmp_path: Path) -> None:
    settings = home.settings
    copy = tmp_path / "copy.gguf"
    copy.symlink_to(target_path(settings.model).resolve())
    before = control.start(settings)
    with DaemonEngine(settings) as engine:
        expected = engine.complete(REQUEST).text
        switched = control.switch_model(settings, str(copy), draft="")
        assert switched.state == "ready"
        assert switched.pid == before.pid
        assert switched.worker_pid != before.worker_pid
        assert Path(switched.model_path) == copy
        assert engine.complete(REQUEST).text == expected

        for wrong in ("target", "draft"):
            files = {"target": str(copy), "draft": "", wrong: str(tmp_path / "missing.gguf")}
            with pytest.raises(ModelError, match=r"missing\.gguf"):
                control.switch_model(settings, files["target"], files["draft"])
            text = tmp_path / "text.gguf"
            text.write_text("not a model")
            files[wrong] = str(text)
            with pytest.raises(ModelError, match=r"text\.gguf: not a GGUF file"):
                control.switch_model(settings, files["target"], files["draft"])
        assert engine.complete(REQUEST).text == expected
        damaged = tmp_path / "damaged.gguf"
        damaged.write_bytes(b"GGUF")
        broken = control.switch_model(settings, str(damaged), draft="")
        assert broken.state == "failed"
        assert "damaged.gguf" in broken.reason
        with pytest.raises(ModelError, match=r"damaged\.gguf"):
            engine.complete(REQUEST)
        assert control.switch_model(settings, str(copy), draft="").state == "ready"
        assert engine.complete(REQUEST).text == expected


def test_a_damaged_model_is_a_clear_failure(home: Home, tmp_path: Path) -> None:
    whole = target_path(home.settings.model).read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole[: len(whole) // 2])
    model = msgspec.structs.replace(home.settings.model, target=str(cut), draft="")
    settings = msgspec.structs.replace(home.settings, model=model)
    report = control.start(settings)
    assert report.state == "failed"
    assert report.reason
    assert report.hint
    assert is_alive(report.pid)
    done = cli("start", "--model", str(cut))
    assert done.returncode == 1
    assert report.reason in done.stdout
    assert "codespec daemon restart" in done.stdout
    with DaemonEngine(settings) as engine, pytest.raises(ModelError, match="cannot load"):
        engine.complete(REQUEST)
    cut.write_bytes(whole)
    with DaemonEngine(settings) as engine:
        assert engine.complete(REQUEST).text, "tried again, as the hint says nothing of a restart"


def test_daemons_of_other_settings_are_found_and_ended(home: Home, tmp_path: Path) -> None:
    model = msgspec.structs.replace(home.settings.model, target=str(tmp_path / "no.gguf"))
    failed = control.start(msgspec.structs.replace(home.settings, model=model))
    assert failed.state == "failed"
    missed = cli("status")
    assert (missed.returncode, "1 of other settings" in missed.stdout) == (3, True)
    ready = control.start(home.settings)
    restarted = cli("restart", "--no-wait").stdout
    assert "1 of other settings or versions: codespec daemon status --all, restart" in restarted
    ready = control.start(home.settings)
    both = json.loads(cli("status", "--all", "--json").stdout)["daemons"]
    assert {report["pid"]: report["state"] for report in both} == {
        failed.pid: "failed",
        ready.pid: "ready",
    }
    assert cli("stop", "--all").stdout == "stopped 2 of them\n"
    for pid in (failed.pid, ready.pid, ready.worker_pid):
        wait_until_gone(pid)
    assert control.running_daemons() == []
    none = cli("status", "--all", "--json")
    assert (none.returncode, json.loads(none.stdout)) == (3, {"daemons": []})


def test_a_restart_ends_those_of_other_settings_if_told_to(home: Home, tmp_path: Path) -> None:
    model = msgspec.structs.replace(home.settings.model, target=str(tmp_path / "no.gguf"))
    other = control.start(msgspec.structs.replace(home.settings, model=model))
    restarted = json.loads(cli("restart", "--all", "--json").stdout)
    wait_until_gone(other.pid)
    assert home.daemon_pids() == [restarted["pid"]]


def test_a_daemon_of_another_version_is_ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    report = control.start(home.settings)
    monkeypatch.setattr(client, "__version__", "0.0.1")
    ((address, answer),) = control.running_daemons()
    assert (str(address), answer) == (report.address, None)
    assert control.stop_all() == 1
    wait_until_gone(report.worker_pid)


def test_an_editor_of_another_version_does_not_start_again_what_was_ended(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        states: asyncio.Queue[StateChanged] = asyncio.Queue()
        editor = AsyncClient(home.settings, states.put_nowait)
        editor.connect()
        while (await states.get()).state != "ready":
            pass
        monkeypatch.setattr(client, "__version__", "0.0.1")
        assert await asyncio.to_thread(control.stop_all) == 1
        assert (await states.get()).state == "stopping"
        await editor.close()

    asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))


def test_over_tcp_with_a_key(home: Home) -> None:
    settings = home.settings
    with DaemonEngine(settings, transport="tcp") as engine:
        assert engine.complete(REQUEST).text
        report = engine.status()
        assert report.address == str(address_of(settings, "tcp").port_file)
    assert control.stop(settings, transport="tcp")
    wait_until_gone(report.pid)


def test_no_source_text_in_the_log(home: Home) -> None:
    settings = msgspec.structs.replace(home.settings, daemon=DaemonSettings(log_level="debug"))
    marked = CompletionRequest("def SECRET_NAME(x):\n    return ", "\nSECRET_NAME(1)\n")
    with DaemonEngine(settings) as engine:
        completion = engine.complete(marked)
        pid = engine.status().worker_pid
        with stopped(pid):
            engine.complete(marked, kill_once(pid))
        engine.complete(marked)
    control.stop(settings)
    text = "".join(p.read_text("utf-8") for p in control.logs(settings)[0].parent.iterdir())
    assert "killed by SIGKILL" in text
    assert "SECRET_NAME" not in text
    words = completion.text.strip()
    assert not words or len(words) < 8 or words not in text
