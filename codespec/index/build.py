"""Bring an index up to date with its workspace: one function for the first build and every later
one.

Content decides, not history: a file is read when its size or times changed, and tokenised only when
no segment holds its content yet. So a rename, a branch switched back, or a copy costs a hash.
Content that no file refers to any more is dead at once, and leaves the disk when its segment is
merged.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from codespec.config import IndexSettings
from codespec.errors import IndexCorruptError, InputError
from codespec.index import check, compact, upkeep
from codespec.index.indexed_file import DocumentReader, IndexedFile
from codespec.index.parsers import Parsers
from codespec.index.selection import LeftOut
from codespec.index.store import RULES, FileEntry, Manifest, SegmentEntry, Store
from codespec.index.walk import FileCandidate, as_text, is_text_name, is_within, scan
from codespec.index.word_encoder import WordEncoder
from codespec.rules.ignore import IgnoreRules

_RACY_NS = 2_000_000_000
"""Nanoseconds. A file changed this shortly before a scan may change again without its times
telling: file systems keep times as coarsely as this. Such a file is read again. (git does the
same.)"""


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """Progress of a build. Phases "scan" and "merge" have no measure of their own; "index" counts
    files and bytes."""

    phase: Literal["scan", "index", "merge", "done"]
    n_files: int = 0
    n_files_done: int = 0
    n_bytes: int = 0
    n_bytes_done: int = 0


@dataclass(slots=True)
class BuildReport:
    """Result of a build.

    n_files: files with indexed text.
    n_tokenised: of `n_files`, those that the tokenizer had to read.
    n_excluded: files and folders that rules kept out of the scan.
    seconds: duration of the build.
    changed: True if the manifest on disk was replaced.
    truncated: True if the scan stopped at its limit of files.
    why_not: reason -> number of candidate files without indexed text.
    crashed: files, of those read now, that killed the parser; they are indexed as plain text.
    """

    n_files: int = 0
    n_tokenised: int = 0
    n_excluded: int = 0
    n_tokens: int = 0
    n_segments: int = 0
    n_index_bytes: int = 0
    n_source_bytes: int = 0
    seconds: float = 0.0
    changed: bool = False
    truncated: bool = False
    why_not: Counter[LeftOut] = field(default_factory=Counter[LeftOut])
    crashed: list[str] = field(default_factory=list[str])


class BuildCancelledError(Exception):
    """`cancelled` returned True. The index is as before, or further along, never half-written."""


def build_index(
    root: str | os.PathLike[str],
    encoder: WordEncoder,
    settings: IndexSettings,
    progress: Callable[[BuildProgress], None] = lambda _: None,
    *,
    parsers: Parsers | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    paths: Collection[str] = ("",),
) -> BuildReport:
    """Build or update the index of a workspace.

    paths: files and folders to look at, relative to the root, as for `scan`; the rest is taken for
        unchanged. Without a whole index on disk everything is looked at.
    encoder: stays the caller's, who may have more to build: it gets faster with the words it has
        seen.
    parsers: processes that parse, one file each at a time. None: one file at a time is parsed in
        this process, which a hostile file may then kill.
    progress: called on this thread, once a file.
    Memory: a few hundred MB at most, whatever the size of the workspace.

    Raises: IndexBusyError when another process builds; BuildCancelledError; InputError for a
    workspace whose path is not Unicode; ConfigError for a cache folder that cannot be used; OSError
    when the disk is full.
    """
    start = time.perf_counter()
    store = Store(os.path.realpath(root), encoder.tokenizer.hash)
    if not is_text_name(store.root):
        raise InputError(
            f"the path of the workspace is not UTF-8: {as_text(store.root)}",
            "Give its folders other names.",
        )
    report = BuildReport()
    with store.writing(), _tidied(store):
        for _ in range(2):  # again without what the first one found damaged
            build = _Build(store, encoder, parsers, settings, progress, cancelled, paths)
            try:
                report = build.run()
            finally:
                build.close()
            if not build.found_damage:
                break
    if report.changed:
        store.mark_used()
        upkeep.evict(settings.max_cache_bytes, keep=store.folder)
    report.seconds = time.perf_counter() - start
    return report


@contextlib.contextmanager
def _tidied(store: Store) -> Generator[None, None, None]:
    """Remove the files written so far on an OSError: on a full disk they would be in the way of
    everybody."""
    try:
        yield
    except OSError:
        with contextlib.suppress(OSError, IndexCorruptError):
            store.remove_unused(store.read_manifest())
        raise


class _Build:
    def __init__(
        self,
        store: Store,
        encoder: WordEncoder,
        parsers: Parsers | None,
        settings: IndexSettings,
        progress: Callable[[BuildProgress], None],
        cancelled: Callable[[], bool],
        paths: Collection[str],
    ) -> None:
        self.store = store
        self.settings = settings
        self.progress = progress
        self.cancelled = cancelled
        self.found_damage = False
        self.old, self.intact = self._previous()
        self.paths = frozenset(paths) if self.old.scanned_ns and self.intact else frozenset([""])
        self.segments = list(self.old.segments)
        self.known = {c.key for s in self.segments for c in s.contents}
        self.writer = compact.SegmentWriter(store)
        self.reader = DocumentReader(
            store.root,
            store.folder,
            encoder,
            parsers,
            settings.max_file_bytes,
            self.known.__contains__,
        )

    def close(self) -> None:
        self.reader.close()

    def _previous(self) -> tuple[Manifest, bool]:
        """The manifest to start from, and True if all of the one on disk could be used."""
        rules = f"{RULES}{self.settings.max_file_bytes}"
        empty = Manifest(self.store.root, self.store.tokenizer_hash, rules)
        try:
            manifest = self.store.read_manifest()
        except IndexCorruptError:
            return empty, False
        if manifest is None or manifest.rules != rules:
            return empty, False
        check.settle_marks(self.store, manifest.segments)
        sound = [s for s in manifest.segments if self._is_sound(s)]
        return manifest.of_segments(sound), len(sound) == len(manifest.segments)

    def _is_sound(self, entry: SegmentEntry) -> bool:
        try:
            segment = self.store.open_segment(entry.name)
            if entry.symbols:
                self.store.open_symbols(entry.symbols)
        except IndexCorruptError:
            return False
        return segment.n_docs == sum(c.n_docs for c in entry.contents)

    def run(self) -> BuildReport:
        self.progress(BuildProgress("scan"))
        started_ns = time.time_ns()
        found = scan(
            IgnoreRules(self.store.root, exclude=self.settings.exclude),
            self.settings.max_file_bytes,
            self.paths,
        )
        report = BuildReport(n_excluded=found.n_excluded, truncated=found.truncated)
        left_out = {LeftOut.TOO_LARGE: found.n_too_large, LeftOut.NAME_NOT_UTF8: found.n_not_text}
        report.why_not.update({why: n for why, n in left_out.items() if n})
        before = {f.path: f for f in self.old.files if is_within(f.path, self.paths)}
        others = [f for f in self.old.files if f.path not in before]
        files: list[FileEntry] = []
        n_bytes = sum(c.stat.size for c in found.files)
        n_done = n_settled = 0
        documents = self.reader.read_all(
            found.files, lambda c: self._unchanged(before.get(c.path), c)
        )
        for document, candidate in zip(documents, found.files, strict=True):
            if self.cancelled():
                raise BuildCancelledError
            if document is not None:
                report.n_tokenised += self._take(document)
                files.append(document.entry)
                n_settled += self._settles(before.get(candidate.path), document.entry, started_ns)
                if document.crashed:
                    report.crashed.append(document.entry.path)
            else:  # no permission, above all
                report.why_not[LeftOut.UNREADABLE] += 1
            n_done += candidate.stat.size
            self.progress(BuildProgress("index", len(found.files), len(files), n_bytes, n_done))
            if self.writer.is_full:
                rest = (before.get(c.path) for c in found.files if c.path > candidate.path)
                self._commit_part([*files, *filter(None, rest), *others])
        self.segments += self.writer.flush()
        self.progress(BuildProgress("merge", len(found.files), len(files), n_bytes, n_bytes))
        files = sorted(files + others, key=lambda f: f.path)
        live = {f.key for f in files}
        try:
            segments = compact.compact(self.store, self.segments, live)
        except compact.DamagedError as e:
            self.store.mark_damaged(str(e))
            segments, self.found_damage = self.segments, True
        # After a scan of some paths the others are as racy as they were.
        scanned_ns = started_ns if "" in self.paths else self.old.scanned_ns
        new = self._manifest(scanned_ns, segments, files)
        if not self.intact or (new.segments, new.files) != (self.old.segments, self.old.files):
            self.store.write_manifest(new)
            report.changed = True
        elif n_settled and "" in self.paths:
            self.store.write_manifest(new)
        self.store.remove_unused(new)
        self._count(report, new)
        self.progress(BuildProgress("done", len(found.files), len(files), n_bytes, n_bytes))
        return report

    def _manifest(
        self, scanned_ns: int, segments: Sequence[SegmentEntry], files: Sequence[FileEntry]
    ) -> Manifest:
        old = self.old
        return Manifest(
            old.root, old.tokenizer_hash, old.rules, scanned_ns, tuple(segments), tuple(files)
        )

    def _commit_part(self, files: Sequence[FileEntry]) -> None:
        """Write a manifest of the segments built so far, so that readers can use them and an
        interruption does not lose them."""
        self.segments += self.writer.flush()
        files = sorted(files, key=lambda f: f.path)
        # The old scan's time: files that were not looked at yet are as racy as they were.
        self.store.write_manifest(self._manifest(self.old.scanned_ns, self.segments, files))
        self.intact = False

    def _take(self, document: IndexedFile) -> bool:
        key = document.entry.key
        if not document.docs or key in self.known:
            return False
        self.known.add(key)
        self.writer.add(key, document.docs, document.symbols)
        return True

    def _unchanged(self, old: FileEntry | None, new: FileCandidate) -> FileEntry | None:
        """The old entry if times and size prove that it still holds."""
        s = new.stat
        is_old = max(s.mtime_ns, s.ctime_ns) < self.old.scanned_ns - _RACY_NS
        return old if old is not None and is_old and old.fits(s) else None

    def _settles(self, old: FileEntry | None, new: FileEntry, started_ns: int) -> bool:
        """True for a file that was read because it was racy and, now that this scan's time is
        known, need not be read again: every file of a fresh clone is such a one."""
        changed_ns = max(new.mtime_ns, new.ctime_ns)
        was_racy = changed_ns >= self.old.scanned_ns - _RACY_NS
        return old == new and was_racy and changed_ns < started_ns - _RACY_NS

    def _count(self, report: BuildReport, manifest: Manifest) -> None:
        live = {f.key for f in manifest.files if f.key}
        report.n_files = sum(1 for f in manifest.files if f.key)
        report.n_source_bytes = sum(f.size for f in manifest.files if f.key)
        report.why_not.update(LeftOut(f.why_not) for f in manifest.files if not f.key)
        report.n_segments = len(manifest.segments)
        for entry in manifest.segments:
            report.n_tokens += sum(c.n_tokens for c in entry.contents if c.key in live)
            report.n_index_bytes += self.store.segment_path(entry.name).stat().st_size
