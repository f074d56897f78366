"""The real watcher, as an editor starts it: files change, and drafts follow."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.config import load_settings
from codespec.index.reader import WorkspaceIndex
from codespec.models.resolve import target_path
from codespec.system.processes import module_command
from codespec_lsp.index_processes import watch_command
from tests.rpc import folder_of

from .conftest import TIMEOUT_S, Home, Spawn, wait_until_gone

ALPHA = "def alpha_one(value):\n    return value + alpha_constant\n"
BETA = "class BetaTwo:\n    beta_field = gamma_function(beta_input)\n"


class Drafts:
    """Drafts of an index reader in this process."""

    def __init__(self, root: Path) -> None:
        vocabulary = load_model(target_path(load_settings().model), vocab_only=True)
        self.tokenizer = LlamaTokenizer(vocabulary)
        self.root = root
        self.index: WorkspaceIndex | None = None

    def after(self, text: str) -> str:
        if self.index is None:
            self.index = WorkspaceIndex.open(self.root, self.tokenizer.hash)
        if self.index is None:
            return ""
        self.index.refresh()
        proposal = self.index.find(self.tokenizer.encode(text), 16).proposal
        return self.tokenizer.decode(proposal.tokens).decode("utf-8", "replace")


def until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@pytest.fixture
def watcher(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    child = start(home)
    yield child
    child.kill()
    child.wait()
    assert child.stdin is not None
    child.stdin.close()


def start(home: Home) -> subprocess.Popen[bytes]:
    command = watch_command(str(home.workspace))
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def test_drafts_follow_the_files(home: Home, watcher: subprocess.Popen[bytes]) -> None:
    drafts = Drafts(home.workspace)

    def has_alpha() -> bool:
        return drafts.after("    return value +").startswith(" alpha_constant")

    def has_beta() -> bool:
        return drafts.after("    beta_field =").startswith(" gamma_function")

    (home.workspace / "alpha.py").write_text(ALPHA)
    until(has_alpha)
    (home.workspace / "new" / "folder").mkdir(parents=True)
    (home.workspace / "new" / "folder" / "beta.py").write_text(BETA)
    until(has_beta)
    assert has_alpha()
    (home.workspace / "new").rename(home.workspace / "node_modules")
    until(lambda: not has_beta())
    (home.workspace / "node_modules").rename(home.workspace / "src")
    until(has_beta)
    (home.workspace / "alpha.py").unlink()
    until(lambda: not has_alpha())
    (home.workspace / ".gitignore").write_text("beta.py\n")
    until(lambda: not has_beta())
    (home.workspace / ".gitignore").unlink()
    until(has_beta)

    # A second editor's watcher waits, and takes over when the first one dies.
    second = start(home)
    watcher.kill()
    (home.workspace / "alpha.py").write_text(ALPHA)
    until(has_alpha)
    assert second.stdin is not None
    second.stdin.close()
    assert second.wait(TIMEOUT_S) == 0


def test_every_folder_of_an_editor_has_an_index_of_its_own(home: Home, spawn: Spawn) -> None:
    roots = {name: home.path / f"folder_{name}" for name in "abc"}
    drafts = {name: Drafts(root) for name, root in roots.items()}
    for name, root in roots.items():
        root.mkdir()
        (root / "m.py").write_text(f"{name}_total = {name}_count({name}_value)\n")

    def has(root: str, name: str) -> bool:
        return drafts[root].after(f"{name}_total =").startswith(f" {name}_count(")

    client = spawn()
    client.initialize(folders=[roots["a"], roots["b"]], workspace={"workspaceFolders": True})
    until(lambda: has("a", "a") and has("b", "b"))
    assert not has("a", "b")
    assert not has("b", "a")
    event = {"added": [folder_of(roots["c"])], "removed": [folder_of(roots["b"])]}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    until(lambda: has("c", "c"))
    assert drafts["b"].index is not None
    lock = FileLock(drafts["b"].index.folder / "watch.lock")
    lock.acquire(timeout=TIMEOUT_S)  # free: nobody watches it any more
    lock.release()
    for name in "ac":
        (roots[name] / "new.py").write_text("x_total = x_count(x_value)\n")
    until(lambda: has("a", "x") and has("c", "x"))
    assert client.close() == 0


def test_the_watcher_ends_with_the_process_that_started_it(home: Home, tmp_path: Path) -> None:
    """However that ends: the pipe closes."""
    command = watch_command(str(home.workspace))
    parent = (
        "import json, os, signal, subprocess, sys\n"
        f"child = subprocess.Popen({command!r}, stdin=subprocess.PIPE)\n"
        "print(json.dumps(child.pid), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", parent], capture_output=True, check=False, timeout=TIMEOUT_S
    )
    wait_until_gone(json.loads(done.stdout))


@pytest.mark.skipif(os.name != "posix", reason="ends a process in order by a signal")
def test_without_a_terminal_it_watches_until_it_is_told_to_end(home: Home) -> None:
    drafts = Drafts(home.workspace)
    (home.workspace / "alpha.py").write_text(ALPHA)
    command = module_command("codespec", "index", str(home.workspace), "--watch", "--quiet")
    nohup = ["sh", "-c", 'trap "" HUP; exec "$@"', "nohup", *command]
    with subprocess.Popen(nohup, stdin=subprocess.DEVNULL) as watcher:
        try:
            until(lambda: drafts.after("    return value +").startswith(" alpha_constant"))
            watcher.send_signal(signal.SIGHUP)
            (home.workspace / "beta.py").write_text(BETA)
            until(lambda: drafts.after("    beta_field =").startswith(" gamma_function"))
        finally:
            watcher.terminate()
        assert watcher.wait(TIMEOUT_S) == 128 + signal.SIGTERM


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("of_all", [True, False], ids=["a terminal's", "its own"])
def test_an_interrupt_ends_it_without_a_word(home: Home, of_all: bool) -> None:
    drafts = Drafts(home.workspace)
    (home.workspace / "alpha.py").write_text(ALPHA)
    arguments = ("index", str(home.workspace), "--watch", "--quiet")
    with subprocess.Popen(
        [sys.executable, "-m", "codespec", *arguments],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    ) as watcher:  # fmt: skip
        try:
            until(lambda: drafts.after("    return value +").startswith(" alpha_constant"))
            (os.killpg if of_all else os.kill)(watcher.pid, signal.SIGINT)
            assert watcher.wait(TIMEOUT_S) == 128 + signal.SIGINT
            assert watcher.stderr is not None
            assert watcher.stderr.read() == b""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(watcher.pid, signal.SIGKILL)
