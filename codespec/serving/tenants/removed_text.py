"""Text that no file of a workspace has any more, until its segment is rewritten without it.

<workspace>/removed   there while there is such text; its time says since when
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Generator, Sequence
from pathlib import Path

from codespec.index.compact import rewritten
from codespec.index.store import SegmentEntry, Store

_MARK = "removed"


@contextlib.contextmanager
def marked(
    store: Store, segments: Sequence[SegmentEntry], live: Collection[str]
) -> Generator[None, None, None]:
    """Write a manifest with these segments meanwhile: before it, the mark is set where they hold
    such text; after it, the mark is removed where they hold none. live: keys of the files'
    contents. Raises: OSError."""
    file = _mark_of(store)
    is_clean = all(_is_live(segment, live) for segment in segments)
    if not is_clean and not file.exists():
        file.touch(mode=0o600)
    yield
    if is_clean:
        file.unlink(missing_ok=True)


def is_due(store: Store, after_s: float) -> bool:
    """True if a workspace has held such text for so many seconds."""
    with contextlib.suppress(OSError):
        return time.time() - _mark_of(store).stat().st_mtime >= after_s
    return False


def without_removed(
    store: Store, segments: Sequence[SegmentEntry], live: Collection[str]
) -> list[SegmentEntry]:
    """Segments with the contents that are live alone: those that hold others are rewritten. Raises:
    DamagedError; OSError."""
    kept = [s for s in segments if _is_live(s, live)]
    return kept + rewritten(store, [s for s in segments if not _is_live(s, live)], live)


def _is_live(segment: SegmentEntry, live: Collection[str]) -> bool:
    return all(content.key in live for content in segment.contents)


def _mark_of(store: Store) -> Path:
    return store.folder / _MARK
