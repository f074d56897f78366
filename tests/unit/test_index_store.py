"""The folder on disk: privacy, atomicity, one writer, and every kind of damage."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from codespec.errors import IndexBusyError, IndexCorruptError
from codespec.index.store import Content, FileEntry, Manifest, SegmentEntry, Store
from codespec.types import Tokens
from tests.index_support import isolate


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    isolate(monkeypatch, tmp_path)
    return Store("/somewhere/project", "tokens-1")


def docs(*lengths: int) -> list[Tokens]:
    return [np.arange(n, dtype=np.int32) for n in lengths]


def manifest(store: Store, segments: tuple[SegmentEntry, ...] = ()) -> Manifest:
    file = FileEntry("a/é.py", 10, 1, 2, "0" * 32)
    return Manifest(store.root, store.tokenizer_hash, "r", 5, segments, (file,))


def test_nothing_is_created_by_looking(store: Store) -> None:
    assert store.read_manifest() is None
    assert not store.folder.exists()


def test_what_is_written_is_read(store: Store) -> None:
    with store.writing():
        name = store.add_segment(docs(3, 0, 5))
        written = manifest(store, (SegmentEntry(name, (Content("0" * 32, 3, 8),)),))
        store.write_manifest(written)
    again = Store(store.root, store.tokenizer_hash)
    assert again.read_manifest() == written
    segment = again.open_segment(name)
    assert (segment.n_docs, segment.n_tokens) == (3, 8)
    assert segment.doc_tokens(2).tolist() == list(range(5))


def test_other_tokenizers_and_roots_have_folders_of_their_own(store: Store) -> None:
    folders = {Store(r, t).folder for r in ("/a", "/b") for t in ("../x", "y")}
    assert len(folders) == 4
    index = store.folder.parent.parent
    assert all(f.parent.parent == index for f in folders)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_private_to_the_user(store: Store) -> None:
    with store.writing():
        store.write_manifest(manifest(store))
        store.add_segment(docs(3))
    for path in (store.folder, *store.folder.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE(store.folder.parent.parent.stat().st_mode) == 0o700


def test_one_writer(store: Store) -> None:
    other = Store(store.root, store.tokenizer_hash)
    with store.writing(), pytest.raises(IndexBusyError, match="another process"), other.writing():
        pass
    with other.writing():
        pass


def test_a_file_that_is_read_in_that_moment_is_replaced_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to replace it."""
    replace, n_refused = os.replace, 2

    def refuse(source: Path, target: Path) -> None:
        nonlocal n_refused
        n_refused -= 1
        if n_refused >= 0:
            raise PermissionError("in use")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with store.writing():
        store.write_manifest(manifest(store))
        assert store.read_manifest() == manifest(store)
        n_refused = 99
        with pytest.raises(PermissionError):
            store.write_manifest(manifest(store))


def test_segments_are_named_by_content(store: Store) -> None:
    with store.writing():
        first = store.add_segment(docs(3, 4))
        path = store.segment_path(first)
        before = path.stat().st_mtime_ns
        assert store.add_segment(docs(3, 4)) == first
        assert path.stat().st_mtime_ns == before
        assert store.add_segment(docs(4, 3)) != first
        path.write_bytes(b"damaged")
        assert store.add_segment(docs(3, 4)) == first
        assert store.open_segment(first).n_tokens == 7


def test_unused_files_go(store: Store) -> None:
    with store.writing():
        keep, drop = store.add_segment(docs(3)), store.add_segment(docs(4))
        (store.folder / "x.tmp").touch()
        kept = manifest(store, (SegmentEntry(keep, ()),))
        store.write_manifest(kept)
        mapped = store.open_segment(drop)
        store.remove_unused(kept)
        assert {p.name for p in store.folder.iterdir()} == {"lock", "manifest.json", f"{keep}.seg"}
        assert mapped.doc_tokens(0).tolist() == [0, 1, 2, 3]  # a reader that still has it


def test_every_changed_byte_of_a_manifest_is_noticed(store: Store) -> None:
    with store.writing():
        store.write_manifest(manifest(store))
    sound = store.manifest_path.read_bytes()
    expected = store.read_manifest()
    for i in range(len(sound)):
        damaged = bytearray(sound)
        damaged[i] ^= 1
        store.manifest_path.write_bytes(damaged)
        try:
            assert store.read_manifest() == expected, i  # a name of no meaning, or a blank
        except IndexCorruptError:
            continue
    for n in range(len(sound)):
        store.manifest_path.write_bytes(sound[:n])
        with pytest.raises(IndexCorruptError, match="built again"):
            store.read_manifest()


def test_a_manifest_of_another_workspace_or_version_is_refused(store: Store) -> None:
    other = Store("/elsewhere", store.tokenizer_hash)
    with store.writing():
        store.write_manifest(manifest(other))
    with pytest.raises(IndexCorruptError, match="another workspace"):
        store.read_manifest()
    with store.writing():
        store.write_manifest(manifest(store))
    data = store.manifest_path.read_bytes()
    store.manifest_path.write_bytes(data.replace(b'"version":2', b'"version":1', 1))
    with pytest.raises(IndexCorruptError, match="format version 1"):
        store.read_manifest()


@pytest.mark.parametrize("name", ["../../../etc/passwd", "", "0" * 31, "0" * 32 + "/x"])
def test_segment_names_are_no_paths(store: Store, name: str) -> None:
    with pytest.raises(IndexCorruptError):
        store.open_segment(name)


def test_missing_and_damaged_segments(store: Store) -> None:
    with store.writing():
        name = store.add_segment(docs(100))
    path = store.segment_path(name)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IndexCorruptError):
        store.open_segment(name)
    path.unlink()
    with pytest.raises(IndexCorruptError):
        store.open_segment(name)
