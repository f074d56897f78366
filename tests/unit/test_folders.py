"""Rights to our folders and files."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespec.system.files import write_atomically
from codespec.system.folders import (
    cache_path,
    data_dir,
    private_files,
    private_folder,
    private_opener,
)
from codespec.usage.statistics import Stats, default_path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a profile is its user's there")


@pytest.fixture(autouse=True)
def _open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_new_files_are_private_and_old_ones_become_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with open(path, "w", opener=private_opener) as file:
        file.write("a")
    assert mode(path) == 0o600
    path.chmod(0o754)
    with open(path, opener=private_opener) as file:
        assert file.read() == "a"
    assert mode(path) == 0o700


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder", "device"])
@pytest.mark.parametrize("flags", ["rb", "wb", "ab", "rb+"])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: str, flags: str) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        if kind == "link":
            other.write_text("theirs")
        path.symlink_to("/dev/null" if kind == "device" else other)
    with pytest.raises(OSError) as refused:  # noqa: PT011 - the number below
        open(path, flags, opener=private_opener)  # noqa: SIM115 - it raises
    assert refused.value.errno in (errno.EINVAL, errno.EISDIR)
    assert not other.exists() or other.read_text() == "theirs"


def test_all_below_a_folder_is_closed_but_where_links_lead(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(0o777)
    (theirs / "file").touch(0o666)
    ours = tmp_path / "ours"
    (ours / "deep" / "er").mkdir(parents=True)
    (ours / "deep" / "er" / "file").touch(0o666)
    (ours / "link").symlink_to(theirs)
    (ours / "linked").symlink_to(theirs / "file")
    private_folder(ours)
    assert [mode(p) for p in (ours, ours / "deep", ours / "deep" / "er")] == [0o700] * 3
    assert mode(ours / "deep" / "er" / "file") == 0o600
    assert (mode(theirs), mode(theirs / "file")) == (0o777, 0o666)


def test_a_folder_that_the_user_names_keeps_its_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold other things than ours: /tmp, for example."""
    shared = tmp_path / "shared"
    shared.mkdir(0o777)
    (shared / "other").touch(0o666)
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(shared))
    assert cache_path() == shared
    assert (mode(shared), mode(shared / "other")) == (0o777, 0o666)
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(shared / "new"))
    cache_path().chmod(0o755)
    assert mode(cache_path()) == 0o700


def test_statistics_and_what_sqlite_puts_beside_them(tmp_path: Path) -> None:
    data_dir()
    old = default_path()
    old.touch(0o644)
    stats = Stats()
    stats.shown("1", "python", 10, 1.0)
    stats.flush()
    assert mode(old) == 0o600
    db = sqlite3.connect(old)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE x (y)")
    beside = [path for path in old.parent.iterdir() if path != old]
    assert {path.suffix for path in beside} == {".db-wal", ".db-shm"}
    assert {mode(path) for path in beside} == {0o600}
    db.close()


def test_files_that_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_atomically(path, b"a")
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    path.chmod(0o644)
    write_atomically(path, b"b")
    assert mode(path) == 0o600
    write_atomically(path, b"c", 0o640)
    assert mode(path) == 0o640


def test_files_of_libraries(tmp_path: Path) -> None:
    with private_files():
        (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    assert (mode(tmp_path / "a"), mode(tmp_path / "b")) == (0o600, 0o666)
