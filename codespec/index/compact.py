"""Segments are written here, and merged before there are too many to query.

Each lookup queries every segment, so small ones are merged; text that no file holds any more leaves
the disk when its segment is rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from codespec.errors import IndexCorruptError
from codespec.index.store import Content, SegmentEntry, Store
from codespec.native import DamagedSegmentError
from codespec.syntax.symbols import Symbol
from codespec.types import Tokens

MAX_SEGMENTS = 8
SEGMENT_TOKENS = 1 << 24
"""Tokens at which a segment is closed: 64 MB of tokens, about 60 MB of source. Building it takes
about five times that memory."""


MAX_DEAD_SEGMENTS = 2
MAX_DEAD_TOKENS = 1 << 22
"""Tokens of the dead segments (all their files changed or gone) that stay on disk: after a switch
back to another branch its text is found there. Readers do not open them."""


class DamagedError(Exception):
    """A segment that was to be merged is damaged. The argument is the segment's name."""


class SegmentWriter:
    """Collects contents and writes them as segments."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._docs: list[Tokens] = []
        self._contents: list[Content] = []
        self._symbols: list[Sequence[Symbol]] = []
        self._n_tokens = 0

    @property
    def is_full(self) -> bool:
        return self._n_tokens >= SEGMENT_TOKENS

    def add(self, key: str, docs: Iterable[Tokens], symbols: Sequence[Symbol] = ()) -> None:
        n_before = len(self._docs)
        self._docs.extend(docs)
        new = self._docs[n_before:]
        n_tokens = sum(len(d) for d in new)
        self._contents.append(Content(key, len(new), n_tokens))
        self._symbols.append(symbols)
        self._n_tokens += n_tokens

    def flush(self) -> list[SegmentEntry]:
        """Write the contents added since the last segment. Returns: their segment, or nothing
        without any."""
        if not self._docs:
            return []
        symbols = self._store.add_symbols(self._symbols) if any(self._symbols) else ""
        name = self._store.add_segment(self._docs)
        entry = SegmentEntry(name, tuple(self._contents), symbols)
        self._docs, self._contents, self._symbols, self._n_tokens = [], [], [], 0
        return [entry]


def compact(
    store: Store, segments: Sequence[SegmentEntry], live: Collection[str]
) -> list[SegmentEntry]:
    """Keep the newest of the dead segments, see `MAX_DEAD_TOKENS`; rewrite segments that are nearly
    all dead; and merge the smallest ones when there are more than `MAX_SEGMENTS`. Large segments
    are left alone and not counted: their number grows with the workspace, by one for each 60 MB of
    source. Dead text in the other segments costs disk, and is live again at once after a switch
    back to its branch.

    Returns: the segments of the new manifest.
    Raises: DamagedError; nothing is lost then, and nothing merged.
    """
    kept = [s for s in segments if _n_live(s, live)]
    dead = [s for s in segments if not _n_live(s, live) and _n_tokens(s) <= MAX_DEAD_TOKENS]
    goes = {id(s) for s in kept if 4 * _n_live(s, live) < _n_tokens(s)}
    small = [s for s in kept if 2 * _n_live(s, live) < SEGMENT_TOKENS]
    if len(small) > MAX_SEGMENTS:
        goes |= {id(s) for s in _smallest(small, live)}
    to_rewrite = [s for s in kept if id(s) in goes]
    result = [s for s in kept if id(s) not in goes]
    return dead[-MAX_DEAD_SEGMENTS:] + result + rewritten(store, to_rewrite, live)


def rewritten(
    store: Store, segments: Sequence[SegmentEntry], live: Collection[str]
) -> list[SegmentEntry]:
    """New segments with the live contents of these. Raises: DamagedError; OSError."""
    writer = SegmentWriter(store)
    result: list[SegmentEntry] = []
    for entry in segments:
        try:
            for content in contents_of(store, entry, live):
                writer.add(*content)
                if writer.is_full:
                    result += writer.flush()
        except (DamagedSegmentError, IndexCorruptError):
            raise DamagedError(entry.name) from None
    return result + writer.flush()


def contents_of(
    store: Store, entry: SegmentEntry, live: Collection[str]
) -> Iterator[tuple[str, list[Tokens], list[Symbol]]]:
    """(key, tokens of each document, symbols) of the live contents of a segment. Blocks are checked
    first: damage must not be written anew under checksums that are right."""
    segment = store.open_segment(entry.name)
    symbols: dict[int, list[Symbol]] = {}
    if entry.symbols:
        file = store.open_symbols(entry.symbols)
        file.require_sound()
        for i, symbol in file:
            symbols.setdefault(i, []).append(symbol)
    first = 0
    for i, content in enumerate(entry.contents):
        if content.key in live:
            docs = [segment.doc_tokens(d) for d in range(first, first + content.n_docs)]
            yield content.key, docs, sorted(symbols.get(i, ()), key=lambda s: s.first_line)
        first += content.n_docs


def _smallest(segments: Sequence[SegmentEntry], live: Collection[str]) -> list[SegmentEntry]:
    """Segments to merge: smallest first until few are left, without any that is larger than all
    before it together. So a token is rewritten a logarithmic number of times, and saving a file
    does not rewrite the workspace.

    Source: O'Neil et al. 1996, The log-structured merge-tree.
    """
    chosen: list[SegmentEntry] = []
    n_tokens = 0
    for segment in sorted(segments, key=lambda s: _n_live(s, live)):
        size = _n_live(segment, live)
        few_left = len(segments) - len(chosen) <= MAX_SEGMENTS // 2
        if few_left and size > n_tokens:
            break
        chosen.append(segment)
        n_tokens += size
    return chosen


def _n_tokens(segment: SegmentEntry) -> int:
    return sum(c.n_tokens for c in segment.contents)


def _n_live(segment: SegmentEntry, live: Collection[str]) -> int:
    return sum(c.n_tokens for c in segment.contents if c.key in live)
