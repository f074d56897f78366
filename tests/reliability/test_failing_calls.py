"""Calls of the operating system that fail while an index is written: the n-th one of a kind, with
each error that it may have, or the process ends there. Each file's text is the old or the new one,
and the next build makes all of it new."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

from tests.index_support import Workspace, workspace
from tests.reliability.amount import amount, chance, tell
from tests.reliability.shims import shim

__all__ = ["workspace"]

KINDS = ("write", "fwrite", "fclose", "fsync", "rename", "mmap", "open", "fopen", "unlink", "read")
FULL, BROKEN = (errno.ENOSPC, errno.EIO), (errno.EMFILE, errno.EACCES, errno.ENOMEM)
FAILS, IS_SHORT, KILLS = range(3)
N_FILES = 6

# Forks for every line that says what fails: the process ends there. Answers with its status, and
# how many calls of each kind there were.
BUILDER = """
import ctypes, os, sys, traceback
from codespec.backends.fake import ByteTokenizer
from codespec.config import IndexSettings
from codespec.errors import CodespecError
from codespec.index.build import build_index
from codespec.index.word_encoder import WordEncoder

library = ctypes.CDLL(None)
encoder, settings = WordEncoder(ByteTokenizer()), IndexSettings()
for line in sys.stdin:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 0
        library.failing_arm(*map(int, line.split()))
        try:
            build_index(sys.argv[1], encoder, settings)
        except (CodespecError, OSError, ValueError) as e:
            status = 1
        except BaseException:
            traceback.print_exc()
            status = 3
        os.write(writing, " ".join(str(library.failing_seen(k)) for k in range(10)).encode())
        os._exit(status)
    os.close(writing)
    _, status = os.waitpid(pid, 0)
    seen = os.read(reading, 999).decode()
    os.close(reading)
    print(os.waitstatus_to_exitcode(status), seen, flush=True)
"""


class Builder:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def build(self, kind: int = -1, n: int = 0, error: int = 0, how: int = FAILS) -> list[int]:
        """(exit status, calls of each kind...)"""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kind} {n} {error} {how}\n")
        self._process.stdin.flush()
        return list(map(int, self._process.stdout.readline().split()))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()


def edit(workspace: Workspace, generation: int) -> None:
    for i in range(N_FILES):
        text = f"name_{i} = value_{generation}_of_{i}\n" * 9
        workspace.write(f"f{i}.zzz", text + f"only_{generation} = {i}\n" * generation)


def generation_of(workspace: Workspace, i: int) -> int:
    said = workspace.draft(f"name_{i} = value_")
    assert f"_of_{i}\n" in said
    return int(said.split("_")[0])


def test_an_index_is_the_old_or_the_new_one(workspace: Workspace) -> None:
    library = shim(Path(__file__).with_name("failing_calls.cpp"))
    edit(workspace, 1)
    workspace.build()
    rng = chance()
    env = {**os.environ, "LD_PRELOAD": library, "FAILING_BELOW": str(workspace.store.folder)}
    command = [sys.executable, "-c", BUILDER, str(workspace.root)]
    n_failed = {"failed": 0, "killed": 0, "passed over": 0}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        builder = Builder(process)
        edit(workspace, 2)
        status, *seen = builder.build()
        assert status == 0
        places = [(kind, n + 1) for kind, count in enumerate(seen) for n in range(count)]
        assert {KINDS[kind] for kind, _ in places} > {"write", "fwrite", "rename", "mmap", "open"}
        generation = 2
        for i in range(amount(40)):
            generation += 1
            edit(workspace, generation)
            kind, n = rng.choice(places)
            how = (FAILS, KILLS, FAILS, IS_SHORT)[i % 4]
            errors = BROKEN if KINDS[kind] in ("open", "fopen", "mmap", "unlink") else FULL
            what = (KINDS[kind], n, how, error := rng.choice(errors))
            status, *_ = builder.build(kind, n, error, how)
            assert status in (0, 1, -9), what
            n_failed[{0: "passed over", 1: "failed", -9: "killed"}[status]] += 1
            found = {generation_of(workspace, i) for i in range(N_FILES)}
            assert found <= {generation - 1, generation}, what
            status, *_ = builder.build()
            assert status == 0, what
            assert {generation_of(workspace, i) for i in range(N_FILES)} == {generation}, what
            assert not list(workspace.store.folder.glob("*.tmp")), what
            (workspace.store.folder / "strikes.json").unlink(missing_ok=True)
        builder.end()
    tell(**n_failed)
    assert n_failed["failed"]
    assert n_failed["killed"]
