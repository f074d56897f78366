"""Machines in a bad state: a clock that is wrong, little memory, a disk that is full, or cannot be
written to. Completions go on where they can, and what fails says why."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespec.index.upkeep import all_status
from tests.e2e.command_line import codespec, error
from tests.e2e.conftest import CODE, CURSOR, Home
from tests.reliability.shims import shim

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="made with means of Linux")

YEAR_S = 365 * 86_400
MIB = 1 << 20


def place_in(home: Home) -> str:
    file = home.workspace / "a.py"
    file.write_text(CODE)
    return f"{file}:{CURSOR[0] + 1}:{CURSOR[1] + 1}"


def text_of(*asked: object, **env: str) -> str:
    return json.loads(codespec("complete", "--json", *asked, check=True, **env)[0])["text"]


def test_a_wrong_clock_changes_no_text(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """One daemon, whose clients and whose own clock are decades apart."""
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(home.path / "cache"))
    library = shim(Path(__file__).with_name("clock.cpp"))
    place = place_in(home)
    right = text_of(place)
    assert right
    for years in (50, -40):
        off = {"LD_PRELOAD": library, "CLOCK_IS_OFF": str(years * YEAR_S)}
        assert text_of("--daemon", place, **off) == right
        codespec("index", home.workspace, check=True, **off)
        new = home.workspace / f"new_{abs(years)}.py"
        new.write_text(f"def function_{abs(years)}():\n    pass\n")
        codespec("index", home.workspace)
        assert text_of("--daemon", place) == right
        found = codespec("index", "--symbols", f"function_{abs(years)}", home.workspace)[0]
        assert new.name in found
        codespec("daemon", "stop")


def test_too_little_memory_is_said_to_be(home: Home) -> None:
    """The most that does not suffice, as a limit of a shell has it: how much that is depends on
    the machine. (Of the worker: `test_memory.py`.)"""
    command = [sys.executable, "-m", "codespec", "complete", place_in(home)]

    def within(n_mib: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (n_mib * MIB, n_mib * MIB)),
        )

    tried = (within(n_mib) for n_mib in range(400, 200, -20))
    done = next(done for done in tried if done.returncode)
    assert "download" not in done.stderr
    assert "Traceback" not in done.stderr
    assert "memory" in done.stderr or "allocate" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root mounts disks")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=4m", "none", folder], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_a_full_disk(home: Home, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(small_disk / "cache"))
    place = place_in(home)
    codespec("index", home.workspace)
    right = text_of(place)
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        fill(filler)
    for i in range(40):
        (home.workspace / f"b{i}.py").write_text(f"def function_{i}(x):\n    return x\n" * 200)
    said = error("index", home.workspace)
    assert "No space left" in said
    assert "the disk with the cache folder" in said
    assert text_of("--daemon", place) == right
    filler.unlink()
    codespec("index", home.workspace)
    (status,) = all_status()
    assert status.is_sound
    assert status.n_files == 41


def test_a_disk_that_cannot_be_written_to(
    home: Home, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(small_disk / "cache"))
    place = place_in(home)
    codespec("index", home.workspace)
    right = text_of(place)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert text_of("--daemon", place) == right
    (home.workspace / "b.py").write_text("x = 1\n")
    assert f"{small_disk / 'cache'} is not writable" in error("index", home.workspace)
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    codespec("index", home.workspace)
    (status,) = all_status()
    assert status.n_files == 2
