"""Watched folders: every one that may hold source, and none that a link leads to."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from codespec.index import watch

if sys.platform != "linux":
    pytest.skip("Linux alone", allow_module_level=True)

from codespec.index.inotify import FolderEvents

_DEADLINE_S = 10.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "w"
    (root / "d" / "e").mkdir(parents=True)
    return root


@pytest.fixture
def events(root: Path) -> Iterator[FolderEvents]:
    with FolderEvents(str(root)) as events:
        yield events


def all_now(events: FolderEvents, root: Path) -> set[str]:
    """Changed paths, relative to the root; waits for the first of them."""
    found: set[str] = set()
    seconds = _DEADLINE_S
    while more := events.wait(seconds):
        found |= {os.path.relpath(path, root) for path in more}
        seconds = 0.0
    return found


def test_links_are_not_followed(root: Path) -> None:
    (root / "all").symlink_to("/")
    (root / "d" / "up").symlink_to("..")
    # Each doubles the ways to the next one.
    for n in range(40):
        (root / f"d{n}").mkdir()
        for name in ("a", "b"):
            (root / f"d{n}" / name).symlink_to(root / f"d{n + 1}")
    with FolderEvents(str(root)) as events:
        assert len(events._folders) == 43


def test_tools_folders_are_not_watched(root: Path, events: FolderEvents) -> None:
    for folder in ("node_modules/x", ".git/objects/aa", ".git/info", "d/__pycache__"):
        (root / folder).mkdir(parents=True)
    all_now(events, root)
    assert len(events._folders) == 3 + 2
    with FolderEvents(str(root)) as again:
        assert len(again._folders) == len(events._folders)
    for file in ("node_modules/x/a.js", ".git/HEAD", ".git/info/exclude", ".git/objects/aa/b"):
        (root / file).write_text("x")
    assert all_now(events, root) == {".git/HEAD", ".git/info/exclude"}


def test_folders_that_come_and_move_are_followed(root: Path, events: FolderEvents) -> None:
    (root / "new" / "er").mkdir(parents=True)
    assert "new" in all_now(events, root)
    (root / "new" / "er" / "a.py").write_text("a")
    assert "new/er/a.py" in all_now(events, root)
    (root / "new").rename(root / "d" / "moved")
    assert all_now(events, root) == {"new", "d/moved"}
    (root / "d" / "moved" / "er" / "a.py").write_text("b")
    assert all_now(events, root) == {"d/moved/er/a.py"}
    (root / "d" / "moved").rename(root.parent / "gone")
    all_now(events, root)
    (root.parent / "gone" / "er" / "a.py").write_text("c")
    (root / "d" / "b.py").write_text("d")
    assert all_now(events, root) == {"d/b.py"}
    shutil.rmtree(root / "d")
    assert "d" in all_now(events, root)
    assert len(events._folders) == 1


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_a_root_that_is_another_folder_is_watched_again(
    root: Path, events: FolderEvents, how: str
) -> None:
    if how == "moved":
        root.rename(root.parent / "old")
    else:
        shutil.rmtree(root)
    root.mkdir()
    (root / "f").mkdir()
    assert "." in all_now(events, root)
    (root / "f" / "a.py").write_text("a")
    assert all_now(events, root) == {"f/a.py"}


def test_lost_events_mean_a_look_at_everything(root: Path, events: FolderEvents) -> None:
    n_queued = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    files = [os.open(root / name, os.O_CREAT | os.O_WRONLY) for name in "ab"]
    for n in range(n_queued + 2):
        os.write(files[n % 2], b"x")  # equal ones in a row are one
    (root / "late").mkdir()
    assert "." in all_now(events, root)
    (root / "late" / "a.py").write_text("a")
    assert all_now(events, root) == {"late/a.py"}
    for fd in files:
        os.close(fd)


def test_folders_that_cannot_be_read_are_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refuse(path: str):
        if path.endswith("/d"):
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with FolderEvents(str(root)) as events:
        assert len(events._folders) == 2


def test_events_reach_the_keeper_as_relative_paths(root: Path) -> None:
    stop = threading.Event()
    notices = watch.file_events(str(root), stop)
    assert next(notices) == set()
    (root / "d" / "a.py").write_text("a")
    (root / "node_modules").mkdir()
    assert next(notices) == {"d/a.py"}
    assert next(notices) == set()
    stop.set()
    assert list(notices) in ([], [set()])


@pytest.mark.parametrize("n_most", [0, 1])
def test_of_the_systems_limits_the_one_that_is_reached_is_named(root: Path, n_most: int) -> None:
    limit = ("instances", "watches")[n_most]
    script = f"""
import sys
from codespec.index.inotify import FolderEvents
try:
    open("/proc/sys/user/max_inotify_{limit}", "w").write("{n_most}")
except OSError:
    sys.exit("no namespace of its own")
FolderEvents({str(root)!r})
"""
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", script]
    try:
        said = subprocess.run(command, capture_output=True, text=True).stderr
    except FileNotFoundError:
        pytest.skip("no unshare")
    if "unshare:" in said or "of its own" in said:
        pytest.skip(said)
    assert f"fs.inotify.max_user_{limit} is too low" in said


def test_one_slow_look_does_not_put_off_the_next_for_ever(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(watch, "FolderEvents", _refuse)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(watch, "_IDLE_MS", 0)
    monkeypatch.setattr(watch.time, "monotonic", lambda: now)
    notices = watch.file_events(str(root), threading.Event())
    assert next(notices) == {""}
    now += 600  # all of a large workspace was read
    assert next(notices) == set()
    now += 60
    assert next(notices) == {""}


def _refuse(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, "no space")


@pytest.mark.parametrize("platform", ["linux", "another"])
def test_without_events_everything_is_looked_at_now_and_then(
    root: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    def refuse(*_: object, **__: object):
        # Of the system's limits watchfiles says one as an OSError, the other as this.
        raise OSError(errno.ENOSPC, "no space") if platform == "linux" else RuntimeError("too many")

    monkeypatch.setattr(watch, "FolderEvents", refuse)
    monkeypatch.setattr(watch, "watch", refuse)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(watch, "_IDLE_MS", 1)
    monkeypatch.setattr(watch, "_POLL_S", 0.02)
    stop = threading.Event()
    notes: list[str] = []
    notices = watch.file_events(str(root), stop, notes.append)
    assert next(notices) == {""}
    assert next(notices) == set()  # time for hints
    (note,) = notes
    assert ("no space" if platform == "linux" else "too many") in note
    assert {""} in [next(notices) for _ in range(200)]
    stop.set()
    assert list(notices) == []
