"""Files of an index that somebody cuts short while processes have them open: what was read of them
is worth nothing any more, and no process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.index.upkeep import all_status
from tests.e2e.conftest import CODE, CURSOR, PATIENT, Home, Spawn, report_of, until
from tests.index_support import Workspace, workspace
from tests.reliability.test_index_gone import folder

__all__ = ["workspace"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a file that is mapped stays whole")

# Opens everything, says so, and reads it again once it was cut short.
READER = """
import sys
from codespec.backends.fake import ByteTokenizer
from codespec.errors import IndexCorruptError
from codespec.index.reader import WorkspaceIndex
from codespec.index.symbol_file import SymbolFile
from codespec.native import DamagedSegmentError

tokenizer = ByteTokenizer()
index = WorkspaceIndex.open(sys.argv[1], tokenizer.hash)
context = tokenizer.encode("return a_sum_of_7")
names = [f"function_{i}" for i in range(300)]
if sys.argv[2] == "used":
    while index.check_some():
        pass
    assert len(index.find(context, 16).proposal)
    assert len(index.definitions(names)) == 900
((native, _),) = index.segments()
found = index.find(context, 16) if sys.argv[2] == "used" else None
files = [SymbolFile(path) for path in index.folder.glob("*.sym")]
print("open", flush=True)
sys.stdin.readline()
for file in files:
    assert len(list(file)) <= 900
    file.is_sound(), file.may_have(file._hashes), list(file.find("function_7"))
assert len(index.definitions(names)) <= 900
texts = [f"return a_sum_of_{i}" for i in range(300)]
for text in texts:
    try:
        native.draft(tokenizer.encode(text), 16)
        native.match(tokenizer.encode(text))
    except DamagedSegmentError:
        pass
for i in range(native.n_docs):
    try:
        native.doc_tokens(i)
    except DamagedSegmentError:
        pass
if found is not None:
    index.locate(found)
native.verify()
for text in texts:
    proposal = index.find(tokenizer.encode(text), 16).proposal
    assert all(0 <= token < 257 for token in proposal.tokens.tolist())
print("read", [s.is_checked for s, _ in index.segments()])
"""


def cut(folder: Path, keep: float) -> int:
    """So much of each file is left."""
    paths = [*folder.glob("*.seg"), *folder.glob("*.sym")]
    for path in paths:
        os.truncate(path, int(path.stat().st_size * keep))
    return len(paths)


@pytest.mark.parametrize("state", ["used", "new"])
@pytest.mark.parametrize("keep", [0, 0.5, 0.95])
def test_a_reader_goes_on(workspace: Workspace, state: str, keep: float) -> None:
    for i in range(300):
        body = f"    a_sum_of_{i} = x + {i}\n    return a_sum_of_{i}  # {i * i}\n"
        workspace.write(f"f{i}.py", f"def function_{i}(x):\n{body}" * 3)
    workspace.build()
    command = [sys.executable, "-c", READER, str(workspace.root), state]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"open\n"
        assert cut(workspace.store.folder, keep) == 2
        reader.stdin.close()
        # Where one is found to be damaged, it is asked no more.
        assert reader.stdout.read().startswith(b"read [")
    assert reader.returncode == 0
    workspace.build()
    assert workspace.draft("return a_sum_of_7").startswith("  # 49\n")


# Looks at an address that is no file's: what other programs do wrong is not hidden.
OTHER = """
import mmap, os, sys
from codespec.native import map_file
kept = map_file(sys.executable)
with open(sys.argv[1], "w+b") as file:
    file.truncate(1 << 16)
    other = mmap.mmap(file.fileno(), 1 << 16)
    file.truncate(0)
    other[1 << 15]
"""


def test_faults_elsewhere_end_the_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OTHER, str(tmp_path / "other")]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode < 0
    # Who wants to know where it was is told.
    command[1:1] = ["-X", "faulthandler"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode < 0
    assert b"Bus error" in done.stderr


def is_sound() -> bool:
    (status,) = all_status()
    return status.is_sound and status.n_files == 200 and not list(folder().glob("*.bad"))


def test_an_editor_keeps_its_worker(
    home: Home, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index comes back by itself, too."""
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(home.path / "cache"))
    for i in range(200):
        (home.workspace / f"f{i}.py").write_text(f"def function_{i}(x):\n    return x + {i}\n" * 9)
    editor = spawn()
    editor.initialize(home.workspace, options={"completion": PATIENT["completion"]})
    until(lambda: bool(all_status()) and is_sound())
    editor.wait_for_status("Normal", "ready")
    uri = (home.workspace / "new.py").as_uri()
    editor.open(uri, CODE)
    editor.complete(uri, *CURSOR)
    worker = report_of(home.settings).worker_pid
    whole = {path.name: path.stat().st_size for path in folder().glob("*.s*")}
    cut(folder(), 0.1)
    for i in range(4):
        editor.change(uri, i + 2, {"text": CODE.replace("path", f"function_{i}")})
        editor.complete(uri, CURSOR[0], CURSOR[1])
    report = report_of(home.settings)
    assert (report.worker_pid, report.n_respawns) == (worker, 0)
    until(lambda: {path.name: path.stat().st_size for path in folder().glob("*.s*")} == whole)
    until(is_sound)
    assert editor.close() == 0
