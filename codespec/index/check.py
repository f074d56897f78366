"""Integrity check of an index on disk. Every byte of it is under a checksum; here all are compared.

Opening an index checks its manifest and the headers of its segments; a reader checks a block before
its first use, and marks the segment when the block is damaged. The full check here runs for
`--verify`, in the watching process when it is idle, and for marked segments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass

from codespec.errors import IndexCorruptError
from codespec.index.store import SegmentEntry, Store


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file of an index. file: its name in the index's folder. what: description for
    people. segment: name of the segment it belongs to, "" for a manifest."""

    file: str
    what: str
    segment: str = ""


def find_damage(store: Store) -> list[Damage]:
    """Check everything the manifest names; about 1 GB a second. Writes nothing."""
    try:
        manifest = store.read_manifest()
    except IndexCorruptError as e:
        return [Damage(store.manifest_path.name, e.message)]
    if manifest is None:
        return []
    return [damage for entry in manifest.segments for damage in segment_damage(store, entry)]


def segment_damage(store: Store, entry: SegmentEntry) -> list[Damage]:
    """Damaged files of one segment; empty for a sound segment."""
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


def settle_marks(store: Store, entries: Collection[SegmentEntry]) -> None:
    """Check the segments that readers marked as damaged, take damaged files out of the index and
    remove all marks. Needs the `writing` lock."""
    for name in store.marked_damaged():
        if any(segment_damage(store, entry) for entry in entries if entry.name == name):
            _remove(store, name)
        store.unmark(name)


def discard(store: Store, damages: Collection[Damage]) -> None:
    """Take damaged files out of the index; the next build makes their content anew.

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
            kept = [s for s in manifest.segments if s.name not in names]
            store.write_manifest(manifest.of_segments(kept))
        for name in names:
            _remove(store, name)


def _remove(store: Store, name: str) -> None:
    # The text built anew has the same name. (Symbols are written in any case.)
    with contextlib.suppress(OSError):
        store.segment_path(name).unlink()
    store.unmark(name)
