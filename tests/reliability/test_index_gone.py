"""An index, or a part of it, that somebody deletes while an editor has the workspace open: it comes
back by itself, with no key typed and no file saved, and one process watches it as before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codespec.index.store import MANIFEST, WATCH_LOCK, index_folders
from codespec.index.upkeep import all_status
from codespec.system.folders import cache_path
from tests.e2e.conftest import CODE, Home, Spawn, until


def is_whole() -> bool:
    """The index of one workspace is there, with all its files."""
    found = [status for status in all_status() if status.is_sound]
    return len(found) == 1 and found[0].n_files == 1 and bool(list(folder().glob("*.sym")))


def folder() -> Path:
    (found,) = index_folders()
    return found


def delete_index() -> None:
    shutil.rmtree(folder(), ignore_errors=True)  # who writes at that moment is in the way


def delete_above() -> None:
    shutil.rmtree(folder().parent, ignore_errors=True)


def delete_cache() -> None:
    shutil.rmtree(cache_path(), ignore_errors=True)


def move_away() -> None:
    (cache_path() / "index").rename(cache_path() / "old")


def delete_manifest() -> None:
    (folder() / MANIFEST).unlink()


def delete_segments() -> None:
    for path in folder().glob("*.seg"):
        path.unlink()


def delete_symbols() -> None:
    for path in folder().glob("*.sym"):
        path.unlink()


def delete_lock() -> None:
    (folder() / WATCH_LOCK).unlink()
    delete_segments()


@pytest.mark.parametrize(
    "delete",
    [
        delete_index,
        delete_above,
        delete_cache,
        move_away,
        delete_manifest,
        delete_segments,
        delete_symbols,
        delete_lock,
    ],
)
def test_it_comes_back(
    home: Home, spawn: Spawn, monkeypatch: pytest.MonkeyPatch, delete: Callable[[], None]
) -> None:
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(home.path / "cache"))
    (home.workspace / "a.py").write_text(CODE)
    editor = spawn()
    editor.initialize(home.workspace)
    until(is_whole)
    delete()
    until(is_whole)
    until(lambda: (folder() / WATCH_LOCK).exists())
    assert editor.close() == 0
    assert os.listdir(home.workspace) == ["a.py"]
