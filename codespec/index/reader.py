"""Drafting from a workspace's index. Any number of readers, in any process, at any time."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.errors import IndexCorruptError
from codespec.files import FileState
from codespec.index.store import RULES, Manifest, SegmentEntry, Store
from codespec.index.symbol_file import SymbolFile, hash_of
from codespec.native import DamagedSegmentError, Proposal, Segment, SuffixAutomaton
from codespec.types import NO_TOKENS, Tokens

_CHECKED_BLOCKS = 256
Dead = npt.NDArray[np.bool_]
_NOTHING = SuffixAutomaton().draft(NO_TOKENS, 0)


@dataclass(frozen=True, slots=True)
class Found:
    """A draft and the segment it comes from: what `WorkspaceIndex.locate` needs."""

    proposal: Proposal
    segment: _OpenSegment | None


@dataclass(frozen=True, slots=True)
class Place:
    """path: relative to the workspace. offset: tokens from the start of the indexed text that
    begins at the path's n-th selected part."""

    path: str
    part: int
    offset: int


@dataclass(frozen=True, slots=True)
class Definition:
    """What a name stands for. kind and signature: as of `symbols.Symbol`. path: relative to the
    workspace. Lines: from 1, the last one included."""

    name: str
    kind: str
    signature: str
    path: str
    first_line: int
    last_line: int


class _OpenSegment:
    """A segment with what the manifest says about its documents."""

    def __init__(self, native: Segment, entry: SegmentEntry, live: set[str]) -> None:
        self.name = entry.name
        self.native = native
        self.keys = [c.key for c in entry.contents]
        self._place = {key: i for i, key in enumerate(self.keys)}
        counts = [c.n_docs for c in entry.contents]
        self.first_docs = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        if self.first_docs[-1] != self.native.n_docs:
            raise IndexCorruptError("a segment does not fit its manifest", "It is built again.")
        self.dead: Dead = np.repeat([k not in live for k in self.keys], counts)
        self.any_dead = bool(self.dead.any())
        self.n_tokens = sum(c.n_tokens for c in entry.contents if c.key in live)

    def without(self, keys: Collection[str]) -> Dead | None:
        """Dead documents, those of `keys` among them. None: all live."""
        gone = [self._place[key] for key in keys if key in self._place]
        if not gone:
            return self.dead if self.any_dead else None
        dead = self.dead.copy()
        for i in gone:
            dead[self.first_docs[i] : self.first_docs[i + 1]] = True
        return dead


class WorkspaceIndex:
    """A consistent view of one generation of the index. Not thread-safe."""

    def __init__(self, store: Store) -> None:
        """Use `open`."""
        self._store = store
        self._identity: FileState = None
        self._segments: list[_OpenSegment] = []
        self._sound_symbols: set[str] = set()
        self._load()

    @classmethod
    def open(cls, root: str | os.PathLike[str], tokenizer_hash: str) -> WorkspaceIndex | None:
        """Map what is there; milliseconds. None where nothing is, nothing sound, or what was made
        under other rules of secrets: completion goes on without, and the next build mends it.

        Raises: ConfigError for a cache folder whose name is none.
        """
        try:
            index = cls(Store(os.path.realpath(root), tokenizer_hash))
        except IndexCorruptError:
            return None
        index._store.mark_used()
        return index

    def refresh(self) -> bool:
        """Go over to a newer generation if there is one; True if so. Costs one stat otherwise.
        An index that was deleted or damaged meanwhile leaves the view as it is."""
        if self._store.generation in (self._identity, None):
            return False
        try:
            self._load()
        except IndexCorruptError:
            return False
        return True

    def segments(self, skip: Collection[str] = ()) -> list[tuple[Segment, Dead | None]]:
        """What is drafted from, each segment with its dead documents; None: all live.

        skip: files whose stored text is not used, absolute or relative to the workspace: their
            editor's buffers are newer.
        """
        return [(segment.native, dead) for segment, dead in self._without(skip)]

    def find(
        self,
        context: Tokens,
        n_max: int,
        skip: Collection[str] = (),
        allowed: Tokens | None = None,
    ) -> Found:
        """Continue `context` as other files of the workspace do: the longest match of any
        segment, of equal ones that with the most votes. Empty when there is none. A few
        microseconds a segment.

        skip: see `segments`.
        allowed: ascending ids that the first token may have; None: any.
        """
        best = Found(_NOTHING, None)
        best_rank = (0, 0)
        for segment, dead in self._without(skip):
            try:
                proposal = segment.native.draft(context, n_max, dead=dead, allowed=allowed)
            except DamagedSegmentError:
                self._drop(segment)
                return self.find(context, n_max, skip, allowed)
            if len(proposal):
                rank = (proposal.match_length, int(proposal.counts[0]))
                if rank > best_rank:
                    best, best_rank = Found(proposal, segment), rank
        return best

    def check_some(self) -> bool:
        """Compare a megabyte of what was not used yet with its checksums; True while there is
        more. What is damaged is not drafted from, and built again by whoever writes next."""
        for segment in self._segments:
            if not segment.native.is_checked:
                if not segment.native.check_some(_CHECKED_BLOCKS) and not segment.native.is_checked:
                    self._drop(segment)
                return True
        return False

    def _drop(self, segment: _OpenSegment) -> None:
        """It is damaged."""
        self._store.mark_damaged(segment.name)
        self._segments = [s for s in self._segments if s is not segment]
        self._skip(self._skipped)

    def locate(self, found: Found) -> Place | None:
        """One of the places the draft's first token was seen at; None for an empty draft. Valid
        until `refresh` returns True."""
        segment = found.segment
        if segment is None:
            return None
        try:
            doc, offset = segment.native.locate(found.proposal.position)
        except IndexError:  # damaged since it was checked
            return None
        i = int(np.searchsorted(segment.first_docs, doc, "right")) - 1
        path = self._path_of.get(segment.keys[i], "")
        return Place(path, doc - int(segment.first_docs[i]), offset)

    def definitions(self, names: Iterable[str]) -> list[Definition]:
        """Where files define these names, in the order of the names; of identical files one.
        About 10 us a name and segment, more at the first call of a generation."""
        path_of = self._path_of
        found: list[Definition] = []
        for name in names:
            for entry, file in self._all_symbols():
                for i, s in file.find(name):
                    path = path_of.get(entry.contents[i].key) if i < len(entry.contents) else None
                    if path is not None:
                        found.append(
                            Definition(name, s.kind, s.signature, path, s.first_line, s.last_line)
                        )
        return found

    def with_copies(self, definitions: Iterable[Definition]) -> list[Definition]:
        """Those of this generation, each in every file of the same content."""
        paths_of: dict[str, list[str]] = {}
        for file in self._manifest.files:
            paths_of.setdefault(file.key, []).append(file.path)
        return [replace(d, path=p) for d in definitions for p in paths_of[self._keys[d.path]]]

    def defined(self, names: Sequence[str]) -> list[str]:
        """Those of these names that some file defines, or did. A microsecond or two each, however
        many are defined; more at the first call of a generation."""
        hashes = np.array([hash_of(name) for name in names], np.uint64)
        known = np.zeros(len(names), np.bool_)
        for _, file in self._all_symbols():
            known |= file.may_have(hashes)
        return [name for name, is_known in zip(names, known.tolist(), strict=True) if is_known]

    @property
    def root(self) -> str:
        """The workspace's folder, absolute."""
        return self._store.root

    @property
    def folder(self) -> Path:
        """Where the index lies."""
        return self._store.folder

    @property
    def generation(self) -> FileState:
        """Another value after every `refresh` that returned True."""
        return self._identity

    def _all_symbols(self) -> list[tuple[SegmentEntry, SymbolFile]]:
        if self._symbols is None:
            self._symbols = list(self._open_symbols())
        return self._symbols

    def _open_symbols(self) -> Iterator[tuple[SegmentEntry, SymbolFile]]:
        for entry in self._manifest.segments:
            if entry.symbols:
                try:
                    file = self._store.open_symbols(entry.symbols)
                    if entry.symbols not in self._sound_symbols:
                        file.require_sound()
                        self._sound_symbols.add(entry.symbols)
                    yield entry, file
                except IndexCorruptError:
                    self._store.mark_damaged(entry.name)

    @property
    def n_files(self) -> int:
        """Files whose text is drafted from."""
        return sum(1 for f in self._manifest.files if f.key)

    @property
    def n_tokens(self) -> int:
        """Live tokens; the text of identical files counts once."""
        return sum(s.n_tokens for s in self._segments)

    @property
    def n_bytes(self) -> int:
        """On disk, and in memory where touched."""
        return sum(s.native.n_bytes for s in self._segments)

    @property
    def paths(self) -> tuple[str, ...]:
        """Files with indexed text, relative to the workspace, sorted."""
        return tuple(f.path for f in self._manifest.files if f.key)

    def _load(self) -> None:
        for attempt in range(3):
            identity = self._store.generation
            manifest = self._store.read_manifest()
            if manifest is None:
                raise IndexCorruptError("there is no index yet", "It is being built.")
            if not manifest.rules.startswith(RULES):
                raise IndexCorruptError(
                    "the index was made under other rules", "It is being built again."
                )
            live = {f.key for f in manifest.files if f.key}
            # Those that are open stay so, with what is known of their blocks.
            known = {s.name: s.native for s in self._segments}
            try:
                used = [s for s in manifest.segments if any(c.key in live for c in s.contents)]
                segments = [
                    _OpenSegment(known.get(s.name) or self._store.open_segment(s.name), s, live)
                    for s in used
                ]
            except IndexCorruptError:
                # A writer may have swapped the manifest and removed the segments it replaced.
                if attempt == 2 or self._store.generation == identity:
                    raise
                continue
            break
        else:
            raise AssertionError("unreachable")
        self._identity = identity
        self._manifest: Manifest = manifest
        self._segments = segments
        self._keys = {f.path: f.key for f in manifest.files}
        self._path_of = {f.key: f.path for f in reversed(manifest.files) if f.key}
        self._symbols: list[tuple[SegmentEntry, SymbolFile]] | None = None
        self._sound_symbols &= {s.symbols for s in manifest.segments}
        self._skip(())

    def _without(self, skip: Collection[str]) -> list[tuple[_OpenSegment, Dead | None]]:
        if tuple(skip) != self._skipped:
            self._skip(tuple(skip))
        return list(zip(self._segments, self._dead, strict=True))

    def _skip(self, paths: tuple[str, ...]) -> None:
        self._skipped = paths
        keys = {self._keys.get(self._relative(path), "") for path in paths}
        self._dead = [s.without(keys) for s in self._segments]

    def _relative(self, path: str) -> str:
        absolute = os.path.realpath(os.path.join(self._store.root, path))
        return os.path.relpath(absolute, self._store.root).replace(os.sep, "/")
