"""An indexer process that is killed at any moment, or by a file made for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from codespec.index.build import BuildProgress
from codespec.index.indexer import EMIT_INTERVAL_S, throttled
from tests.index_support import Workspace, workspace

__all__ = ["workspace"]

if os.name != "posix":
    pytest.skip("kills by signal and limits memory", allow_module_level=True)

BUILD = """
import sys
from codespec.backends.fake import ByteTokenizer
from codespec.config import IndexSettings
from codespec.index import compact
from codespec.index.indexer import run_indexer
from codespec.index.word_encoder import WordEncoder
compact.SEGMENT_TOKENS = int(sys.argv[2])
report = run_indexer(
    sys.argv[1],
    WordEncoder(ByteTokenizer()),
    IndexSettings(),
    lambda event: print(event.phase, flush=True),
    max_memory_bytes=600 << 20,
    n_parsers=2,
)
print(report.n_files, *report.crashed)
"""

# A tokenizer that dies of some text, as native code may.
FRAGILE = BUILD.replace(
    "report =",
    """
import os, signal
class Fragile(ByteTokenizer):
    def encode(self, text):
        if "bomb" in str(text):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(text)
ByteTokenizer = Fragile
report =""",
    1,
)


def run(workspace: Workspace, script: str = BUILD) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", script, str(workspace.root), str(1 << 24)]
    return subprocess.run(command, capture_output=True, check=False, timeout=120)


# Calls of the operating system after which a build is ended, by number.
KILLING = """
import os, signal, sys
left = int(sys.argv[3])

def count(event, args):
    global left
    if armed and event in ("open", "os.rename", "os.remove", "os.mkdir", "os.scandir"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

armed = False
sys.addaudithook(count)
""" + BUILD.replace("report =", "armed = True\nreport =", 1)


def test_sigkill_at_any_moment_leaves_a_whole_index(workspace: Workspace) -> None:
    """The process kills itself after n calls that open, rename or remove something, for n up to
    the end of the build: with every n, the index is one of the whole states on the way."""
    old = {f"f{i}.zzz": f"old_{i} = before_{i}\n" * 9 for i in range(8)}
    new = {f"f{i}.zzz": f"new_{i} = after_{i}\n" * 9 for i in range(8)}
    for path, text in old.items():
        workspace.write(path, text)
    workspace.build()
    for path, text in new.items():
        workspace.write(path, text)
    n_killed, n = 0, 0
    while True:
        # A file that is in work at two kills is left out, as it may be what the process died of.
        (workspace.store.folder / "strikes.json").unlink(missing_ok=True)
        command = [sys.executable, "-c", KILLING, str(workspace.root), "400", str(n)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        index = workspace.index()
        assert index.paths == tuple(sorted(old))
        for i in range(8):
            was = workspace.draft(f"old_{i} =").startswith(f" before_{i}\n")
            is_now = workspace.draft(f"new_{i} =").startswith(f" after_{i}\n")
            assert was != is_now
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
        n_killed += 1
        n += 1 + n // 8
    assert n_killed >= 10
    assert workspace.build().n_tokenised == 0
    assert not list(workspace.store.folder.glob("*.tmp"))
    for i in range(8):
        assert workspace.draft(f"new_{i} =").startswith(f" after_{i}\n")


def test_sigkill_at_random_times(workspace: Workspace) -> None:
    """From outside, at times nobody chose: in the parser, in native code, between two writes."""
    rng = np.random.default_rng(7)
    files = {f"f{i:02}.py": f"def f_{i}(x):\n    return x + {i}\n" * 400 for i in range(40)}
    for path, text in files.items():
        workspace.write(path, text)
    command = [sys.executable, "-c", BUILD, str(workspace.root), "50000"]
    for _ in range(8):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        assert process.stdout.readline() == b"scan\n"
        try:
            process.wait(float(rng.uniform(0, 0.3)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        index = workspace.open()
        if index is not None:
            assert set(index.paths) <= set(files)
            tokens = workspace.tokenizer.encode(files["f07.py"])
            index.find(tokens[:50], 16)
    # A file that was in work at two kills is left out, as it may be what the process died of.
    (workspace.store.folder / "strikes.json").unlink(missing_ok=True)
    assert run(workspace).returncode == 0
    assert workspace.index().n_files == 40


def test_a_file_that_kills_the_parser_is_indexed_without_it(workspace: Workspace) -> None:
    # 40 kB that make this grammar take gigabytes at the end of the file, without a call back.
    # In lines, as one line that long is taken for minified and not parsed.
    workspace.write("bomb.java", ("a<" * 200 + "\n") * 100)
    files = {f"good_{i}.py": f"# Copyright A\n\ngood_{i} = good_value\n" for i in range(9)}
    for path, text in files.items():
        workspace.write(path, text)
    first = run(workspace)
    assert first.returncode == 0, first.stderr
    assert first.stdout.split() == [b"scan", b"index", b"merge", b"done", b"10", b"bomb.java"]
    assert workspace.index().paths == ("bomb.java", *files)
    assert workspace.draft("good_7 =").startswith(" good_value")
    assert not workspace.draft("# Copyr", 3)  # all others were parsed
    # What is known of the bomb outlives its index.
    workspace.store.manifest_path.unlink()
    again = run(workspace)
    assert again.stdout.split()[-1] == b"10"
    assert workspace.index().n_files == 10


def test_a_file_that_kills_the_tokenizer_is_left_out(workspace: Workspace) -> None:
    workspace.write("a_bomb.py", "bomb = 1\n")
    workspace.write("good.py", "good_name = good_value\n")
    for _ in range(2):
        assert run(workspace, script=FRAGILE).returncode == -9
        assert workspace.open() is None
    third = run(workspace, script=FRAGILE)
    assert third.returncode == 0, third.stderr
    assert third.stdout.split()[-1] == b"1"
    assert workspace.index().paths == ("good.py",)


def test_progress_is_thinned_out() -> None:
    now = 0.0
    passed: list[BuildProgress] = []
    emit = throttled(passed.append, lambda: now)
    for i in range(100):
        emit(BuildProgress("index", 100, i))
        now += EMIT_INTERVAL_S / 9.99  # ten of them are more than the interval, nine are less
    emit(BuildProgress("merge", 100, 100))
    emit(BuildProgress("done", 100, 100))
    assert [e.n_files_done for e in passed] == [*range(0, 100, 10), 100, 100]


# Asks to be ended while a file is in work, twice over as an editor that is closed may.
ENDING = """
import os, signal, sys
from codespec.system.processes import ending_in_order
from codespec.index import selection

def select(path, source, parse):
    os.kill(os.getpid(), int(sys.argv[3]))
    return known(path, source, parse=parse)

known, selection.select = selection.select, select
with ending_in_order():
    exec(sys.stdin.read())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_blames_no_file(workspace: Workspace, number: signal.Signals) -> None:
    workspace.write("a.zzz", "alpha = 1\n")
    command = [sys.executable, "-c", ENDING, str(workspace.root), str(1 << 24), str(int(number))]
    for _ in range(2):
        done = subprocess.run(
            command, input=BUILD.encode(), capture_output=True, check=False, timeout=120
        )
        assert done.returncode == 128 + number, done.stderr
    assert workspace.build().n_files == 1


SUPERVISED = """
import sys
from codespec.cli.index import building
child = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
building.module_command = lambda *_: [sys.executable, "-c", child]
sys.exit(building.supervise(quiet=True))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_child_does_not_outlive_its_supervisor(number: signal.Signals) -> None:
    command = [sys.executable, "-c", SUPERVISED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        assert process.wait(60) != 0
        assert process.stdout.read() == b""  # which the child had open, too
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


TOLD = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit("told"))
print("ready", flush=True)
time.sleep(300)
"""


def test_a_child_is_told_of_an_interrupt_that_came_to_its_supervisor_alone() -> None:
    supervised = SUPERVISED.replace("child = ", f"child = {TOLD!r}\n_ = ")
    command = [sys.executable, "-c", supervised]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
        assert b"told" in process.stderr.read()
