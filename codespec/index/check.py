"""Is an index on disk what was written? Every byte of it is under a checksum; here all are asked.

Opening an index checks its manifest and the headers of its segments. A damaged block in between
only makes drafts worse, never wrong, so it can wait for somebody to look: `--verify`, or the
watching process in quiet moments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from codespec.errors import IndexCorruptError
from codespec.index.store import Manifest, SegmentEntry, Store


@dataclass(frozen=True, slots=True)
class Damage:
    """file: its name in the index's folder. segment: the one it belongs to, "" for a manifest."""

    file: str
    what: str
    segment: str = ""


def find_damage(store: Store) -> list[Damage]:
    """Look at everything the manifest names; about 1 GB a second. Writes nothing."""
    try:
        manifest = store.read_manifest()
    except IndexCorruptError as e:
        return [Damage(store.manifest_path.name, e.message)]
    if manifest is None:
        return []
    return [damage for entry in manifest.segments for damage in segment_damage(store, entry)]


def segment_damage(store: Store, entry: SegmentEntry) -> list[Damage]:
    """What is wrong with one segment."""
    file = f"{entry.name}.seg"
    try:
        segment = store.open_segment(entry.name)
    except IndexCorruptError as e:
        return [Damage(file, e.message, entry.name)]
    found: list[Damage] = []
    if blocks := segment.verify():
        found.append(Damage(file, f"{len(blocks)} of {segment.n_blocks} blocks", entry.name))
    elif segment.n_docs != sum(c.n_docs for c in entry.contents):
        found.append(Damage(file, "it does not fit the manifest", entry.name))
    if entry.symbols:
        try:
            if not store.open_symbols(entry.symbols).is_sound():
                found.append(Damage(f"{entry.symbols}.sym", "its checksum is wrong", entry.name))
        except IndexCorruptError as e:
            found.append(Damage(f"{entry.symbols}.sym", e.message, entry.name))
    return found


def discard(store: Store, damages: Collection[Damage]) -> None:
    """Take what is damaged out of the index; the next build makes it anew.

    Raises: IndexBusyError when another process is writing.
    """
    with store.writing():
        names = {d.segment for d in damages if d.segment}
        try:
            manifest = store.read_manifest()
        except IndexCorruptError:
            manifest = None
            store.manifest_path.unlink(missing_ok=True)
        if manifest is not None:
            store.write_manifest(_without(manifest, names))
        for name in names:
            # A build that finds a file of the right name would take it for sound. (Symbols are
            # written in any case.)
            with contextlib.suppress(OSError):
                store.segment_path(name).unlink()


def _without(manifest: Manifest, names: Collection[str]) -> Manifest:
    segments = tuple(s for s in manifest.segments if s.name not in names)
    keys = {c.key for s in segments for c in s.contents} | {""}
    files = tuple(f for f in manifest.files if f.key in keys)
    return msgspec.structs.replace(manifest, segments=segments, files=files)
