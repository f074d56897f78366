"""Changes in a workspace are brought into its index: removals first, additions then.

An event is the name of a file or folder that may have changed; "" is the whole workspace. Its
meaning is never guessed: the files are looked at again, so that events may come late, twice, in any
order, or too many.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection

import msgspec

from codespec.config import IndexSettings
from codespec.errors import IndexCorruptError
from codespec.index.build import BuildProgress, BuildReport, build_index
from codespec.index.parsers import Parsers
from codespec.index.store import FileEntry, Store
from codespec.index.walk import has_anything_at, is_within, scan
from codespec.index.word_encoder import WordEncoder
from codespec.rules.ignore import IGNORE_FILES, IgnoreRules
from codespec.system.files import FileState


def apply_changes(
    root: str | os.PathLike[str],
    encoder: WordEncoder,
    settings: IndexSettings,
    paths: Collection[str],
    *,
    parsers: Parsers | None = None,
    progress: Callable[[BuildProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> BuildReport:
    """Bring the index up to date after changes at or below `paths`, relative to `root`.

    Readers lose the old text of changed, deleted and newly excluded files within milliseconds, and
    get the new text when it is read.

    parsers, progress, cancelled, errors: as of `build_index`.
    """
    places = with_ruled(paths)
    withdraw(Store(os.path.realpath(root), encoder.tokenizer.hash), places, settings)
    return build_index(
        root,
        encoder,
        settings,
        progress,
        parsers=parsers,
        cancelled=cancelled,
        paths=places,
    )


def with_ruled(paths: Collection[str]) -> set[str]:
    """Changed paths, with the folder that each changed ignore file applies to."""
    found = set(paths)
    for path in paths:
        folder, _, name = path.rpartition("/")
        if name in IGNORE_FILES:
            found.add(folder)
        elif path.endswith(".git/info/exclude"):
            found.add(path.removesuffix(".git/info/exclude").rstrip("/"))
    return found


class EventFilter:
    """Tells events that may change an index from those that cannot: a compiler may write all day
    into ignored folders, and an update reads the whole manifest twice. Remembers the manifest's
    paths. Not thread-safe."""

    def __init__(self, store: Store, settings: IndexSettings) -> None:
        self._store = store
        self._settings = settings
        self._generation: FileState = None
        self._indexed: list[str] | None = None  # sorted; None: there is no index that can be used

    def affecting(self, paths: Collection[str]) -> set[str]:
        """Those of the changed paths, and of the folders that changed ignore files apply to, at
        which a scan finds something or the index still has something. Cost: a few file reads, and
        the manifest if it is new and there are others."""
        store, most = self._store, self._settings.max_file_bytes
        rules = IgnoreRules(store.root, exclude=self._settings.exclude)
        places = with_ruled(paths)
        found = {path for path in places if has_anything_at(path, rules, most)}
        return found | {path for path in places - found if self._is_indexed(path)}

    def _is_indexed(self, path: str) -> bool:
        """True if the index has this file, or a file below this folder."""
        generation = self._store.generation
        if generation != self._generation:
            self._generation, self._indexed = generation, self._read()
        indexed = self._indexed
        if indexed is None:
            return True
        for lowest in (path, f"{path}/"):
            at = bisect_left(indexed, lowest)
            if at < len(indexed) and (indexed[at] == path or indexed[at].startswith(f"{path}/")):
                return True
        return False

    def _read(self) -> list[str] | None:
        try:
            manifest = self._store.read_manifest()
        except IndexCorruptError:
            return None
        return None if manifest is None else sorted(file.path for file in manifest.files)


def withdraw(store: Store, paths: Collection[str], settings: IndexSettings) -> int:
    """Take the old text of those files among `paths` that changed, or may no longer be used, out of
    the index at once. Their new text comes later. Returns: the number of these files. Cost: a stat
    of each, and the manifest twice.

    Raises: IndexBusyError.
    """
    with store.writing():
        try:
            manifest = store.read_manifest()
        except IndexCorruptError:
            return 0  # readers cannot use it either
        if manifest is None:
            return 0
        given = frozenset(paths)
        rules = IgnoreRules(store.root, exclude=settings.exclude)
        found = scan(rules, settings.max_file_bytes, given)
        now = {c.path: c.stat for c in found.files}

        def holds(entry: FileEntry) -> bool:
            if not entry.key or not is_within(entry.path, given):
                return True
            s = now.get(entry.path)
            # A file that an event names has changed, even if size and times are as before.
            return s is not None and entry.path not in given and entry.fits(s)

        kept = tuple(f for f in manifest.files if holds(f))
        n_gone = len(manifest.files) - len(kept)
        if n_gone:
            store.write_manifest(msgspec.structs.replace(manifest, files=kept))
        return n_gone
