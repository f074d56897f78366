"""The indexer child: one for each folder, how often it is started, and that it ends with us."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from codespec.config import IndexSettings, load_settings
from codespec.system.processes import module_command
from codespec_lsp import index_processes as indexer_module
from codespec_lsp.index_processes import Indexer, watch_command, watch_environment

TIMEOUT_S = 30.0
# Notes down its process id and what it is told, and does what a file says.
CHILD = """
import os, signal, sys
root = sys.argv[1]
with open(root + "/runs", "a") as runs:
    runs.write(f"{os.getpid()}\\n")
for line in sys.stdin:
    with open(root + "/heard", "a") as heard:
        heard.write(line)
    if line == "crash\\n":
        os.kill(os.getpid(), signal.SIGKILL)
    if line == "fail\\n":
        sys.exit(3)
"""

pytestmark = pytest.mark.asyncio


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.005)


async def until_runs(root: Path, n_runs: int) -> None:
    await until(lambda: len(lines(root / "runs")) >= n_runs)


async def until_it_listens(indexer: Indexer, root: Path, n_runs: int) -> None:
    await until_runs(root, n_runs)
    await until(lambda: str(root) in indexer._children)  # which may be known later than it runs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


Make = Callable[..., Indexer]


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Make]:
    """Indexers that are closed after a test that fails, too: asyncio would cancel what starts a
    child together with what that waits for, and then wait for ever."""
    made: list[Indexer] = []

    def indexer(script: str = CHILD, **options: Any) -> Indexer:
        command = options.pop("command", lambda root: [sys.executable, "-c", script, root])
        made.append(Indexer(command, **options))
        return made[-1]

    yield indexer
    for one in made:
        await one.close()


@pytest.fixture
def indexer(make: Make) -> Indexer:
    return make(pause_s=0.001)


async def test_one_child_for_a_folder(indexer: Indexer, root: Path) -> None:
    indexer.watch(str(root))
    indexer.watch(str(root))
    await until_it_listens(indexer, root, 1)
    indexer.watch(str(root))
    indexer.changed(str(root), "/a b/é.py")
    await until(lambda: lines(root / "heard") == ["/a b/é.py"])
    await indexer.close()
    assert len(lines(root / "runs")) == 1


@pytest.mark.parametrize("how", ["crash", "fail"])
async def test_a_child_that_dies_is_started_again(indexer: Indexer, root: Path, how: str) -> None:
    indexer.watch(str(root))
    for n in (1, 2, 3):
        await until_it_listens(indexer, root, n)
        indexer.changed(str(root), how)
    await until_runs(root, 4)
    await indexer.close()


async def test_a_child_that_fails_again_and_again_is_given_up(
    make: Make, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = CHILD + "\nsys.exit(3)"
    script = script.replace("for line in sys.stdin:", "for line in ():")
    indexer = make(script, pause_s=0.0)
    indexer.watch(str(root))
    await until(lambda: not indexer._tasks)
    assert len(lines(root / "runs")) == indexer_module.MAX_FAILURES
    assert "status 3" in caplog.text
    indexer.changed(str(root), "a.py")  # the user goes on working: one more try
    await until(lambda: not indexer._tasks)
    assert len(lines(root / "runs")) == indexer_module.MAX_FAILURES + 1


async def test_a_program_that_is_missing_does_no_harm(
    make: Make, tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing = make(command=lambda _: [str(tmp_path / "missing")], pause_s=0.0)
    missing.watch(str(root))
    await until(lambda: not missing._tasks)
    assert "cannot index" in caplog.text


@pytest.mark.parametrize("stubborn", [False, True])
async def test_the_child_ends_with_the_server_and_has_low_priority(
    make: Make, root: Path, stubborn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer_module, "_PATIENCE_S", 0.2 if stubborn else TIMEOUT_S)
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()\n"
    script = CHILD.replace("for line", deaf + "for line") if stubborn else CHILD
    indexer = make(script)
    indexer.watch(str(root))
    await until_runs(root, 1)
    pid = int(lines(root / "runs")[0])
    await until(lambda: os.getpriority(os.PRIO_PROCESS, pid) >= 10)  # set once it runs
    await indexer.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_closed_folder_is_watched_no_more(indexer: Indexer, root: Path) -> None:
    indexer.watch(str(root))
    await until_runs(root, 1)
    pid = int(lines(root / "runs")[0])
    await indexer.unwatch(str(root))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await indexer.unwatch("never opened")


async def test_the_whole_disk_and_the_home_folder_are_no_projects(
    indexer: Indexer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (Path("/"), tmp_path, tmp_path / "missing"):
        indexer.watch(str(folder))
    assert not indexer._tasks


async def test_the_command_names_the_model_only_if_it_is_not_the_configured_one() -> None:
    watch = ["index", "/p", "--watch", "--in-process", "--quiet", "--progress"]
    assert watch_command("/p") == module_command("codespec", *watch)
    assert watch_command("/p", "/m.gguf")[-2:] == ["--model", "/m.gguf"]


async def test_the_child_has_the_settings_of_the_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[index]\nexclude = ["other.py"]\nmax_file_bytes = 1\n')
    settings = IndexSettings(
        exclude=("a,b.py", "[ab].py"), max_file_bytes=200, max_cache_bytes=10**6
    )
    monkeypatch.setenv("UNRELATED", "x")
    env = watch_environment(settings)
    assert env["UNRELATED"] == "x"
    assert load_settings(env=env, config_file=config).index == settings
    nothing = IndexSettings()
    assert load_settings(env=watch_environment(nothing), config_file=config).index == nothing


async def test_progress_is_heard_and_nonsense_is_not(
    make: Make, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    child = """
print("garbage", flush=True)
print('{"note": "no file events"}', flush=True)
print('{"n_files_done": 1}', flush=True)
print('{"n_files_done": 1, "n_files": 3}', flush=True)
print("x" * 100_000, flush=True)
print('{"n_files_done": 3, "n_files": 3}', flush=True)
"""
    told: list[tuple[str, int, int]] = []
    indexer = make(child, on_progress=lambda *progress: told.append(progress))
    indexer.watch(str(root))
    await until(lambda: len(told) == 3)
    assert told == [(str(root), 1, 3), (str(root), 3, 3), (str(root), 0, 0)]
    assert "no file events" in caplog.text
    await indexer.close()
