"""What happened to a workspace, brought into its index: first what must go, then what is new.

Any event is the name of a file or folder that may have changed; "" is the whole workspace. What an
event means is never guessed: the files are looked at again, so that events may come late, twice,
in any order, or too many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

import msgspec

from codespec.config import IndexSettings
from codespec.errors import IndexCorruptError
from codespec.index.build import BuildProgress, BuildReport, build_index
from codespec.index.ignore import IGNORE_FILES, IgnoreRules
from codespec.index.parsers import Parsers
from codespec.index.scan import is_within, scan
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
