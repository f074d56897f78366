"""What happened to a workspace, brought into its index: first what must go, then what is new.

Any event is the name of a file or folder that may have changed; "" is the whole workspace. What an
event means is never guessed: the files are looked at again, so that events may come late, twice,
in any order, or too many.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection

import msgspec

from codespec.config import IndexSettings
from codespec.errors import IndexCorruptError
from codespec.files import FileState
from codespec.index.build import BuildProgress, BuildReport, build_index
from codespec.index.ignore import IGNORE_FILES, IgnoreRules
from codespec.index.parsers import Parsers
from codespec.index.scan import has_anything_at, is_within, scan
from codespec.index.store import FileEntry, Store
from codespec.index.words import WordEncoder


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
    """Bring the index up to date after changes of `paths`, relative to `root`, or below them.

    Readers lose the old text of changed, deleted and newly excluded files within milliseconds, and
    get the new text when it is read.

    Raises: as `build_index`.
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
    """Changed paths, with the folder that each changed ignore file rules over."""
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
    into folders that ignore files exclude, and bringing an index up to date reads all of its
    manifest, twice. Remembers the paths in it. Not thread-safe."""

    def __init__(self, store: Store, settings: IndexSettings) -> None:
        self._store = store
        self._settings = settings
        self._generation: FileState = None
        self._indexed: list[str] | None = None  # sorted; None: there is no index that can be used

    def affecting(self, paths: Collection[str]) -> set[str]:
        """Of changed paths, and folders that changed ignore files among them rule over, those where
        a scan finds something, or where the index still has something. Cost: a few file reads, and
        the manifest where it is a new one and there are others."""
        store, most = self._store, self._settings.max_file_bytes
        rules = IgnoreRules(store.root, exclude=self._settings.exclude)
        places = with_ruled(paths)
        found = {path for path in places if has_anything_at(path, rules, most)}
        return found | {path for path in places - found if self._is_indexed(path)}

    def _is_indexed(self, path: str) -> bool:
        """Whether the index has this file, or some below this folder."""
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
    """Commit at once that files among `paths` which changed, or may no longer be used, hold
    nothing. Returns: how many. Cost: a look at each of them, and the manifest twice.

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
            # One that an event names has changed, even if it looks as before.
            return s is not None and entry.path not in given and entry.fits(s)

        kept = tuple(f for f in manifest.files if holds(f))
        n_gone = len(manifest.files) - len(kept)
        if n_gone:
            store.write_manifest(msgspec.structs.replace(manifest, files=kept))
        return n_gone
