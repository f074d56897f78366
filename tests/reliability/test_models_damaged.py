"""Model files that are cut short or hold other numbers than they did: a reason and a next step, no
traceback, and no process that hangs. (What a worker with one says: `test_daemon.py`.)"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.models.bundled_pair import BUNDLED_DRAFT, bundled
from tests.e2e.conftest import Home
from tests.reliability.amount import amount, chance, tell

if sys.platform != "linux":
    pytest.skip("forks, and limits memory", allow_module_level=True)

N_HEAD = 700_000
"""Bytes that hold everything but the weights."""

# Forks for every file that is named.
SHOWING = """
import os, resource, signal, sys, traceback
import codespec.cli.models.show
from codespec.backends import llama
from codespec.cli import main
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.dup2(2, 1)
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        signal.alarm(60)
        sys.argv = ["codespec", "models", "show", line.strip()]
        status = 0
        try:
            main()
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else int(e.code is not None)
        except BaseException:
            traceback.print_exc()
            status = 99
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""
NUMBERS = (0, 1, 12, 255, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 63, (1 << 64) - 1)


def mutant(model: bytes, rng: random.Random) -> bytes:
    data = bytearray(model)
    at = rng.randrange(rng.choice((64, 2_000, N_HEAD)))
    how = rng.randrange(6)
    if how == 0:
        return bytes(data[: rng.randrange(len(data))])
    if how == 1:
        data[at] ^= 1 << rng.randrange(8)
    elif how == 2:
        data[at : at + 8] = struct.pack("<Q", rng.choice(NUMBERS))
    elif how == 3:
        data[at : at + 16] = rng.randbytes(16)
    elif how == 4:
        del data[at : at + rng.choice((1, 4, 8, 100))]
    else:
        data[at:at] = rng.randbytes(rng.choice((1, 4, 8)))
    return bytes(data)


def test_they_are_shown_or_refused(home: Home, tmp_path: Path) -> None:
    rng = chance()
    model = bundled(BUNDLED_DRAFT).read_bytes()
    file = tmp_path / "damaged.gguf"
    log = tmp_path / "log"
    counts = {"shown": 0, "refused": 0}
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", SHOWING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=os.environ,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        for n in range(amount(24)):
            file.write_bytes(model if n == 0 else mutant(model, rng))
            process.stdin.write(f"{file}\n")
            process.stdin.flush()
            status = int(process.stdout.readline())
            said = log.read_text(errors="replace")
            assert status in (0, 1), said[-2000:]
            assert "Traceback" not in said
            assert n or status == 0, said
            counts["refused" if status else "shown"] += 1
        process.stdin.close()
    tell(**counts)
    assert counts["refused"]
