"""All indexes of this user: their status, deletion of useless ones, and eviction to a size
limit."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import filelock

from codespec.errors import IndexCorruptError
from codespec.index.store import LOCKS, MANIFEST, USED, Store, index_folders, read_manifest


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """Status of one index. root: "" if the manifest does not say. age_s: seconds since the last
    change. unused_s: seconds since somebody last needed it. problem: why it cannot be used, for
    people, "" for a sound one. is_built: False if there is no manifest yet."""

    folder: str
    root: str = ""
    tokenizer: str = ""
    n_files: int = 0
    n_tokens: int = 0
    n_segments: int = 0
    n_bytes: int = 0
    age_s: float = 0.0
    unused_s: float = 0.0
    problem: str = ""
    is_built: bool = True

    @property
    def is_sound(self) -> bool:
        return not self.problem


def all_status(root: str | None = None) -> list[IndexStatus]:
    """Status of every index, or of those of one workspace (absolute, links resolved); most recently
    used first. Manifests and segment headers are checked, blocks are not, see `check`."""
    return sorted((_status(f) for f in index_folders(root)), key=lambda s: s.unused_s)


def _status(folder: Path) -> IndexStatus:
    now = time.time()
    status = IndexStatus(str(folder), n_bytes=n_bytes(folder), unused_s=now - used_at(folder))
    try:
        manifest = read_manifest(folder)
        if manifest is None:
            return replace(status, problem="it is not built yet", is_built=False)
        store = Store(manifest.root, manifest.tokenizer_hash)
        for entry in manifest.segments:
            store.open_segment(entry.name)
        problem = "" if os.path.isdir(manifest.root) else "the workspace is gone"
    except IndexCorruptError as e:
        return replace(status, problem=e.message)
    live = {f.key for f in manifest.files if f.key}
    contents = {c.key: c.n_tokens for s in manifest.segments for c in s.contents}
    return replace(
        status,
        root=manifest.root,
        tokenizer=manifest.tokenizer_hash,
        n_files=sum(1 for f in manifest.files if f.key),
        n_tokens=sum(contents.get(key, 0) for key in live),
        n_segments=len(manifest.segments),
        age_s=now - (folder / MANIFEST).stat().st_mtime,
        problem=problem,
    )


def prune(max_bytes: int) -> list[IndexStatus]:
    """Delete indexes of workspaces that are gone, unusable ones, and then the least recently used
    until the rest fits into `max_bytes`. An index in use stays. Returns: those deleted."""
    gone = [s for s in all_status() if not s.is_sound]
    removed = [s for s in gone if remove(Path(s.folder))]
    sound = {s.folder: s for s in all_status()}
    return removed + [sound[str(f)] for f in evict(max_bytes) if str(f) in sound]


def evict(max_bytes: int, keep: Path | None = None) -> list[Path]:
    """Delete the least recently used indexes until all together take at most `max_bytes`. keep: one
    that stays whatever its size. Returns: the folders deleted."""
    sizes = {folder: n_bytes(folder) for folder in index_folders()}
    total = sum(sizes.values())
    removed: list[Path] = []
    for folder in sorted(sizes, key=used_at):
        if total <= max_bytes:
            break
        if folder != keep and remove(folder):
            total -= sizes[folder]
            removed.append(folder)
    return removed


def remove(folder: Path) -> bool:
    """Delete an index. Returns: False if a process is writing or watching it."""
    with contextlib.ExitStack() as stack:
        try:
            for name in LOCKS:
                stack.enter_context(filelock.FileLock(folder / name, timeout=0, mode=0o600))
        except (filelock.Timeout, OSError):
            return False
        # Without a manifest there is no index, whatever else is left by an interruption.
        with contextlib.suppress(OSError):
            (folder / MANIFEST).unlink()
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()
    return not folder.exists()


def used_at(folder: Path) -> float:
    """Time of the last use, in seconds since the epoch; 0 for an index that was never used."""
    for name in (USED, MANIFEST):
        with contextlib.suppress(OSError):
            return (folder / name).stat().st_mtime
    return 0.0


def n_bytes(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total
