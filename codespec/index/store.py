"""An index on disk: immutable segment files, and one manifest that says which of them count.

    <cache folder>/index/<workspace>/<tokenizer>/
        manifest.json      replaced atomically; a reader sees the old or the new one
        <hash>.seg         a segment: named by content, never changed, removed when no manifest
                           names it
        <hash>.sym         the symbols of a segment's contents, likewise
        <hash>.bad         mark of a reader that found damage in the segment or its symbols
        lock, watch.lock   held by the one writer, and by the one process that watches
        used               its time says when somebody last needed the index
        strikes.json, in-flight    the contents that killed an indexer, see `strikes`

Everything here can be deleted at any moment and is then built again. Files are private to the user:
an index holds the workspace's text.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import filelock
import msgspec
import numpy as np
import numpy.typing as npt

from codespec.errors import IndexBusyError, IndexCorruptError
from codespec.index import selection
from codespec.index.symbol_file import SymbolFile, pack_symbols
from codespec.index.walk import FileStat
from codespec.native import Segment, build_segment
from codespec.rules import secrets
from codespec.syntax.symbols import Symbol
from codespec.system.files import FileState, state_of
from codespec.system.folders import (
    cache_dir,
    cache_path,
    not_writable,
    private_folder,
    private_opener,
)
from codespec.types import Tokens

FORMAT_VERSION = 2
RULES = f"{selection.RULES_VERSION}.{secrets.VERSION}/"
"""Prefix of a manifest's `rules` that was made under the current rules."""
MANIFEST = "manifest.json"
USED = "used"
WATCH_LOCK = "watch.lock"
LOCKS = ("lock", WATCH_LOCK)
_REPLACE_WAITS_S = (0.001, 0.01, 0.1)
_NAME = re.compile(r"[0-9a-f]{32}")


class Content(msgspec.Struct, frozen=True, array_like=True):
    """The indexed text of one or more identical files: adjacent documents of a segment, one for
    each selected span. key: hash that names the content."""

    key: str
    n_docs: int
    n_tokens: int


class SegmentEntry(msgspec.Struct, frozen=True):
    """A segment in the manifest. contents: in the order of their documents. symbols: name of the
    file with their definitions, "" if there are none."""

    name: str
    contents: tuple[Content, ...]
    symbols: str = ""


class FileEntry(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was when last read. path: relative to the workspace. size: bytes. key: that of
    its `Content`, "" if none of it is indexed; why_not is then the key of a `LeftOut`."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    key: str
    why_not: str = ""

    def fits(self, s: FileStat) -> bool:
        """True if the file's size and times are those of this entry."""
        return (self.size, self.mtime_ns, self.ctime_ns) == (s.size, s.mtime_ns, s.ctime_ns)


class Manifest(msgspec.Struct, frozen=True):
    """List of the segments and files of an index. root: the workspace, absolute. rules: everything
    besides the files that decided the content; another value makes all of it void. scanned_ns: wall
    clock before the scan, in nanoseconds."""

    root: str
    tokenizer_hash: str
    rules: str
    scanned_ns: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    files: tuple[FileEntry, ...] = ()

    def of_segments(self, segments: Sequence[SegmentEntry]) -> Manifest:
        """A copy with only these of its segments, without the files whose text is in none of
        them."""
        keys = {c.key for s in segments for c in s.contents} | {""}
        files = tuple(f for f in self.files if f.key in keys)
        return msgspec.structs.replace(self, segments=tuple(segments), files=files)


class _Envelope(msgspec.Struct, frozen=True):
    version: int
    checksum: str
    body: msgspec.Raw


class Store:
    """The index folder of one workspace and tokenizer. Methods that write need the `writing`
    lock."""

    def __init__(self, root: str, tokenizer_hash: str, folder: Path | None = None) -> None:
        """root: absolute, links resolved. folder: of the index; None: in the cache folder. Creates
        nothing."""
        self.root = root
        self.tokenizer_hash = tokenizer_hash
        self._is_cached = folder is None
        if folder is None:
            folder = cache_path() / "index" / _short_hash(root) / _short_hash(tokenizer_hash)
        self.folder = folder
        self.manifest_path = self.folder / MANIFEST

    @contextlib.contextmanager
    def writing(self) -> Generator[None, None, None]:
        """Hold the writer's lock.

        Raises: IndexBusyError when another process holds it; as `make_folder`.
        """
        lock = filelock.FileLock(self.make_folder() / "lock", timeout=0, mode=0o600)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise IndexBusyError(
                f"the index of {self.root} is being built by another process",
                "Wait until it is done; its result is used here, too.",
            ) from None
        try:
            yield
        finally:
            lock.release()

    def make_folder(self) -> Path:
        """Make the folder, private to the user, if it is not there yet. Raises: OSError;
        ConfigError if a folder of another user stands in its place."""
        if not self._is_cached:
            return private_folder(self.folder)
        above = cache_dir()
        for folder in (above / "index", self.folder.parent, self.folder):
            try:
                private_folder(folder)
            except PermissionError:
                raise not_writable(above, "CODESPEC_CACHE_DIR") from None
            above = folder
        if not os.access(self.folder, os.W_OK):
            raise not_writable(self.folder, "CODESPEC_CACHE_DIR")
        return self.folder

    def read_manifest(self) -> Manifest | None:
        """The manifest; None if there is no index yet. Raises: IndexCorruptError for a damaged one
        or one of another version."""
        manifest = read_manifest(self.folder)
        if manifest is None:
            return None
        if (manifest.root, manifest.tokenizer_hash) != (self.root, self.tokenizer_hash):
            raise _corrupt(self.folder, "it belongs to another workspace or tokenizer")
        return manifest

    @property
    def generation(self) -> FileState:
        """Identity of the manifest on disk, another for each one written; None without a
        manifest."""
        return state_of(self.manifest_path)

    def mark_used(self) -> None:
        """Note that somebody needs this index: the least recently used ones are evicted first."""
        with contextlib.suppress(OSError):
            (self.folder / USED).touch(mode=0o600)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest atomically; its segments must be on disk already."""
        body = msgspec.json.encode(manifest)
        envelope = _Envelope(FORMAT_VERSION, _short_hash(body), msgspec.Raw(body))
        self._write(self.manifest_path, msgspec.json.encode(envelope))

    def add_symbols(self, contents: Sequence[Sequence[Symbol]]) -> str:
        """Write the symbols of a segment's contents to disk. Returns: the file's name."""
        data = pack_symbols(contents)
        name = _short_hash(data)
        self._write(self.symbols_path(name), data)
        return name

    def open_symbols(self, name: str) -> SymbolFile:
        """Map a symbol file. Raises: IndexCorruptError if it is missing or its header is
        damaged."""
        return SymbolFile(self.symbols_path(name))

    def symbols_path(self, name: str) -> Path:
        return self._named(name, ".sym")

    def add_segment(self, docs: list[Tokens]) -> str:
        """Build a segment of these documents and write it to disk. Returns: its name; the same
        documents in the same order give the same name."""
        lengths = np.array([len(d) for d in docs], np.int64)
        starts = np.zeros(len(docs), np.int64)
        np.cumsum(lengths[:-1], out=starts[1:])
        tokens = np.concatenate(docs) if docs else np.zeros(0, np.int32)
        name = _content_name(tokens, starts)
        path = self.segment_path(name)
        if path.exists():
            with contextlib.suppress(IndexCorruptError):
                if not self.open_segment(name).verify():
                    return name
        with self._replacing(path) as temporary:
            with open(temporary, "wb", opener=private_opener):
                pass  # made with the right mode before anything is in it
            build_segment(temporary, tokens, starts)
            with open(temporary, "rb+") as f:
                os.fsync(f.fileno())
        return name

    def open_segment(self, name: str) -> Segment:
        """Map a segment. Raises: IndexCorruptError if it is missing or its header is damaged."""
        try:
            return Segment.open(self.segment_path(name))
        except (OSError, ValueError) as e:
            raise _corrupt(self.folder, str(e)) from None

    def mark_damaged(self, name: str) -> None:
        """Ask the next writer to check a segment. Needs no lock."""
        with contextlib.suppress(OSError):
            self._named(name, ".bad").touch(mode=0o600)

    def marked_damaged(self) -> set[str]:
        """Names of the segments that readers marked as damaged."""
        return {path.stem for path in self.folder.glob("*.bad")}

    def unmark(self, name: str) -> None:
        """Remove the damage mark of a segment."""
        self._named(name, ".bad").unlink(missing_ok=True)

    def segment_path(self, name: str) -> Path:
        return self._named(name, ".seg")

    def remove_unused(self, manifest: Manifest | None) -> None:
        """Delete segments and temporary files that the current manifest does not name. Readers that
        still map one keep it until they unmap it."""
        segments = manifest.segments if manifest is not None else ()
        used = {f"{s.name}.seg" for s in segments}
        used |= {f"{s.symbols}.sym" for s in segments}
        used |= {f"{s.name}.bad" for s in segments}
        for path in self.folder.iterdir():
            is_ours = path.suffix in (".seg", ".sym", ".bad")
            if path.suffix == ".tmp" or (is_ours and path.name not in used):
                with contextlib.suppress(OSError):  # Windows: still mapped; the next time, then
                    path.unlink()

    def _named(self, name: str, suffix: str) -> Path:
        if not _NAME.fullmatch(name):
            raise _corrupt(self.folder, "the name of a file is wrong")
        return self.folder / f"{name}{suffix}"

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file atomically; it is on disk when this returns."""
        with self._replacing(path) as temporary, open(temporary, "wb", opener=private_opener) as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())

    @contextlib.contextmanager
    def _replacing(self, path: Path) -> Generator[Path, None, None]:
        """Yield a temporary file that replaces `path` at the end. It is deleted if that fails: on a
        full disk it would be in the way of everybody."""
        temporary = path.with_suffix(".tmp")
        try:
            yield temporary
            _replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        self._sync_folder()

    def _sync_folder(self) -> None:
        if os.name == "posix":
            fd = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in an index's folder; None if there is none.

    Raises: IndexCorruptError.
    """
    try:
        envelope = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Envelope)
        if envelope.version != FORMAT_VERSION:
            raise _corrupt(folder, f"format version {envelope.version}")
        if envelope.checksum != _short_hash(bytes(envelope.body)):
            raise _corrupt(folder, "its checksum is wrong")
        return msgspec.json.decode(envelope.body, type=Manifest)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise _corrupt(folder, str(e)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise _corrupt(folder, str(e)) from None


def index_folders(root: str | None = None) -> list[Path]:
    """Folders of all indexes, or of those of one workspace (absolute, links resolved).

    Raises: ConfigError if folders of another user stand in their place.
    """
    index = cache_path() / "index"
    if os.path.isdir(index) and not os.access(index, os.R_OK | os.X_OK):
        raise not_writable(index, "CODESPEC_CACHE_DIR")
    above = list(index.glob("*")) if root is None else [index / _short_hash(root)]
    return sorted(f for folder in above for f in folder.glob("*") if f.is_dir())


def _replace(source: Path, target: Path) -> None:
    """Replace a file, with retries: Windows refuses while somebody reads it."""
    for wait_s in _REPLACE_WAITS_S:
        try:
            os.replace(source, target)
        except PermissionError:
            time.sleep(wait_s)
        else:
            return
    os.replace(source, target)


def _corrupt(folder: Path, what: str) -> IndexCorruptError:
    return IndexCorruptError(
        f"the index in {folder} cannot be used: {what}", "It is built again by itself."
    )


def _short_hash(data: str | bytes) -> str:
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def _content_name(tokens: Tokens, starts: npt.NDArray[np.int64]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(len(starts).to_bytes(8, "little"))
    digest.update(starts.tobytes())
    digest.update(np.ascontiguousarray(tokens).data)
    return digest.hexdigest()
