"""The walk: what it finds, and what a tree made to harm it does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codespec.index.walk import is_binary, read_file, scan
from codespec.rules.ignore import MAX_DEPTH, IgnoreRules
from tests.index_support import isolate


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    isolate(monkeypatch, tmp_path)
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


def paths(root: Path, max_file_bytes: int = 1000) -> list[str]:
    return [c.path for c in scan(IgnoreRules(root), max_file_bytes).files]


def test_sorted_and_without_what_is_excluded(root: Path) -> None:
    for path in ("b.py", "a/z.py", "a/.env", "node_modules/x.js", "c.log", "a-b.py"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("x")
    (root / ".gitignore").write_text("*.log\n")
    assert paths(root) == [".gitignore", "a-b.py", "a/z.py", "b.py"]


def test_sizes_and_times(root: Path) -> None:
    (root / "small").write_text("x" * 1000)
    (root / "large").write_text("x" * 1001)
    found = scan(IgnoreRules(root), 1000)
    assert [(c.path, c.stat.size) for c in found.files] == [("small", 1000)]
    assert found.files[0].stat.mtime_ns == (root / "small").stat().st_mtime_ns
    assert found.n_too_large == 1


def test_links_pipes_and_devices(root: Path) -> None:
    (root.parent / "outside.py").write_text("x")
    (root / "l.py").symlink_to(root.parent / "outside.py")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.py")
    (root / "x.py").write_text("x")
    assert paths(root) == ["x.py"]
    assert read_file(str(root / "l.py"), 1000) is None
    assert read_file(str(root / "pipe.py"), 1000) is None
    assert read_file(str(root), 1000) is None
    assert read_file(str(root / "none"), 1000) is None
    assert read_file("/dev/zero", 1000) is None


def test_odd_names(root: Path) -> None:
    for name in (b"\xff.py", b"a b\n\x1b[31m.py", "é.py".encode()):
        (root / os.fsdecode(name)).write_text("x")
    assert paths(root) == ["a b\n\x1b[31m.py", "é.py"]
    found = scan(IgnoreRules(root), 1000)
    assert (found.n_not_text, found.n_excluded) == (1, 0), "no rule keeps it out"


def test_deep_folders(root: Path) -> None:
    folder = root
    for _ in range(MAX_DEPTH + 20):
        folder = folder / "d"
    folder.mkdir(parents=True)
    (folder / "x.py").write_text("x")
    (root / "d/y.py").write_text("x")
    assert paths(root) == ["d/y.py"]


def test_a_missing_root(root: Path) -> None:
    assert paths(root / "none") == []


def test_reading_stops_at_the_limit(root: Path) -> None:
    (root / "x").write_bytes(b"x" * 11)
    assert read_file(str(root / "x"), 10) is None
    loaded = read_file(str(root / "x"), 11)
    assert loaded is not None
    assert loaded[0] == b"x" * 11
    assert loaded[1].size == 11


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe", b"\xe9t\xe9"])
def test_binary(data: bytes) -> None:
    assert is_binary(data)


def test_text() -> None:
    assert not is_binary("été\r\n\t".encode())
