"""Drafting from a workspace's index. Any number of readers, in any process, may be open at any
time."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.errors import IndexCorruptError
from codespec.index.store import RULES, Manifest, SegmentEntry, Store
from codespec.index.symbol_file import SymbolFile, hash_of
from codespec.native import MAX_DEPTH, DamagedSegmentError, Proposal, Segment, SuffixAutomaton
from codespec.system.files import FileState, relative
from codespec.types import NO_TOKENS, Tokens

_CHECKED_BLOCKS = 256
Dead = npt.NDArray[np.bool_]
_NOTHING = SuffixAutomaton().draft(NO_TOKENS, 0)


@dataclass(frozen=True, slots=True)
class IndexMatch:
    """A draft and the segment it comes from, for `WorkspaceIndex.locate`. segment: None for an
    empty draft."""

    proposal: Proposal
    segment: _OpenSegment | None


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """A place in indexed text. path: relative to the workspace. part: number of the selected part
    of the file. offset: tokens from the start of the indexed text that begins at this part."""

    path: str
    part: int
    offset: int


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a name. kind, signature: as in `symbols.Symbol`. path: relative to the
    workspace. first_line, last_line: from 1, both included."""

    name: str
    kind: str
    signature: str
    path: str
    first_line: int
    last_line: int


class _OpenSegment:
    """An open segment with the manifest's data about its documents."""

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

    def key_of(self, doc: int) -> str:
        """Name of the content that a document is a part of."""
        return self.keys[int(np.searchsorted(self.first_docs, doc, "right")) - 1]

    def parts(self, key: str) -> list[Tokens] | None:
        """Tokens of each document of a content; None where it is not here."""
        place = self._place.get(key)
        if place is None:
            return None
        first, end = self.first_docs[place : place + 2]
        return [self.native.doc_tokens(doc) for doc in range(int(first), int(end))]

    def without(self, keys: Collection[str]) -> Dead | None:
        """Dead documents of the segment, with those of the contents `keys` among them. None: all
        are live."""
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
        """Use `open` instead."""
        self._store = store
        self._identity: FileState = None
        self._segments: list[_OpenSegment] = []
        self._sound_symbols: set[str] = set()
        self._load()

    @classmethod
    def open(cls, root: str | os.PathLike[str], tokenizer_hash: str) -> WorkspaceIndex | None:
        """Map the index of a workspace; takes milliseconds. None if there is no index, no sound
        one, or one made under other rules of secrets: completion works without it, and the next
        build mends it.

        Raises: ConfigError for a cache folder whose name is not valid.
        """
        return cls.of(Store(os.path.realpath(root), tokenizer_hash))

    @classmethod
    def of(cls, store: Store) -> WorkspaceIndex | None:
        """`open` for an index wherever it is kept."""
        try:
            index = cls(store)
        except IndexCorruptError:
            return None
        store.mark_used()
        return index

    def refresh(self) -> bool:
        """Switch to a newer generation if there is one. Returns: True if so; otherwise costs one
        stat. The view stays as it is when the index was deleted or damaged meanwhile."""
        if self._store.generation in (self._identity, None):
            return False
        try:
            self._load()
        except IndexCorruptError:
            return False
        return True

    def segments(
        self, skip: Collection[str] = (), contents: Collection[str] = ()
    ) -> list[tuple[Segment, Dead | None]]:
        """Segments to draft from, each with its dead documents; None: all of them are live.

        skip: files whose stored text is not used, absolute or relative to the workspace: their
            editor's buffers are newer. contents: names of contents that are not used either.
        """
        if contents:
            keys = {*contents, *(self._keys.get(self._relative(path), "") for path in skip)}
            return [(segment.native, segment.without(keys)) for segment in self._segments]
        return [(segment.native, dead) for segment, dead in self._without(skip)]

    def has(self, path: str) -> bool:
        """True if text of this file, absolute or relative to the workspace, is in the index."""
        return bool(self._keys.get(self._relative(path)))

    def holders(self, tokens: Tokens, most: int) -> set[str]:
        """Names of the contents with all of these tokens, 64 at most, in a row; none where more
        than `most` places of a segment have them. A few microseconds a segment."""
        keys: set[str] = set()
        for segment in self._segments:
            try:
                documents = segment.native.holders(tokens, most)
            except DamagedSegmentError:
                self._drop(segment)
                return self.holders(tokens, most)
            keys |= {segment.key_of(doc) for doc in documents}
        return keys

    def find(
        self,
        context: Tokens,
        n_max: int,
        skip: Collection[str] = (),
        allowed: Tokens | None = None,
    ) -> IndexMatch:
        """Draft the continuation of `context` from other files of the workspace: that of the
        longest match in any segment, among equally long ones that with the most votes. Empty if
        there is none. Takes a few microseconds a segment.

        n_max: most tokens of the draft.
        skip: see `segments`.
        allowed: ascending ids that the first token may have; None: any.
        """
        best = IndexMatch(_NOTHING, None)
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
                    best, best_rank = IndexMatch(proposal, segment), rank
        return best

    def content(self, key: str) -> list[Tokens]:
        """The tokens of each part of a content; none for one that is not here, or is damaged."""
        for segment in self._segments:
            try:
                parts = segment.parts(key)
            except DamagedSegmentError:
                self._drop(segment)
                return self.content(key)
            if parts is not None:
                return parts
        return []

    def token_after(self, tokens: Tokens) -> int | None:
        """A token that follows all of these in the text of a file, the most frequent one; None
        where no file has them. Of more than 64, the last 64 count."""
        found = self.find(tokens, 1).proposal
        is_whole = len(found) and found.match_length == min(len(tokens), MAX_DEPTH)
        return int(found.tokens[0]) if is_whole else None

    def check_some(self) -> bool:
        """Compare a megabyte of unused blocks with their checksums. Returns: True while there is
        more. Damaged segments are not drafted from, and the next writer builds them again."""
        for segment in self._segments:
            if not segment.native.is_checked:
                if not segment.native.check_some(_CHECKED_BLOCKS) and not segment.native.is_checked:
                    self._drop(segment)
                return True
        return False

    def _drop(self, segment: _OpenSegment) -> None:
        """Stop drafting from a damaged segment and mark it."""
        self._store.mark_damaged(segment.name)
        self._segments = [s for s in self._segments if s is not segment]
        self._skip(self._skipped)

    def locate(self, found: IndexMatch) -> IndexPlace | None:
        """One of the places where the draft's first token occurs; None for an empty draft. Valid
        until `refresh` returns True."""
        segment = found.segment
        if segment is None:
            return None
        try:
            doc, offset = segment.native.locate(found.proposal.position)
        except IndexError:  # damaged since it was checked
            return None
        i = int(np.searchsorted(segment.first_docs, doc, "right")) - 1
        path = self._path_of.get(segment.key_of(doc), "")
        return IndexPlace(path, doc - int(segment.first_docs[i]), offset)

    def definitions(self, names: Iterable[str]) -> list[Definition]:
        """Definitions of these names, in the order of the names; of identical files only one. About
        10 us a name and segment, more at the first call of a generation."""
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
        """These definitions, each repeated for every file of the same content. They must be of this
        generation."""
        paths_of: dict[str, list[str]] = {}
        for file in self._manifest.files:
            paths_of.setdefault(file.key, []).append(file.path)
        return [replace(d, path=p) for d in definitions for p in paths_of[self._keys[d.path]]]

    def defined(self, names: Sequence[str]) -> list[str]:
        """Those of these names that some file defines, or once defined. A microsecond or two each,
        however many are defined; more at the first call of a generation."""
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
        """The folder of the index."""
        return self._store.folder

    @property
    def is_deleted(self) -> bool:
        """True if there is no manifest on disk any more."""
        return self._store.generation is None

    @property
    def generation(self) -> FileState:
        """Identity of the manifest in use; it differs after every `refresh` that returned True."""
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
        """Number of files whose text is drafted from."""
        return sum(1 for f in self._manifest.files if f.key)

    @property
    def n_tokens(self) -> int:
        """Number of live tokens; the text of identical files counts once."""
        return sum(s.n_tokens for s in self._segments)

    @property
    def n_bytes(self) -> int:
        """Bytes on disk, and in memory as far as they were read."""
        return sum(s.native.n_bytes for s in self._segments)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of files with indexed text, relative to the workspace, sorted."""
        return tuple(f.path for f in self._manifest.files if f.key)

    @property
    def contents(self) -> dict[str, str]:
        """Path, relative to the workspace -> name of its content, of files with indexed text."""
        return {path: key for path, key in self._keys.items() if key}

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
            # Open segments stay open, and their checked blocks stay checked.
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
        return relative(absolute, self._store.root).replace(os.sep, "/")
