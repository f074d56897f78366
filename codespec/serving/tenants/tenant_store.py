"""Workspaces of tenants on disk: one folder a tenant, and in it an index for each workspace.

    <folder>/<tenant>/pending/<key>      a content that no workspace lists yet
    <folder>/<tenant>/<workspace>/       an index as `index.store` writes it; its files have opaque
                                         ids instead of paths

An engine's workers, in other processes, read the indexes; they see a new state by one stat. So
several engines may share the folder. Whoever deletes a tenant's folder has deleted all of it.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from codespec.backends.remote.token_batches import key_of, state_of
from codespec.errors import IndexBusyError, IndexCorruptError
from codespec.index.compact import DamagedError, SegmentWriter, compact, contents_of
from codespec.index.store import RULES, USED, FileEntry, Manifest, SegmentEntry, Store
from codespec.native import DamagedSegmentError
from codespec.serving.tenants.removed_text import is_due, marked, without_removed
from codespec.serving.tenants.tenant_settings import TenantSettings
from codespec.serving.tenants.workspace_change import (
    MissingError,
    QuotaError,
    StaleError,
    WorkspaceChange,
    WorkspaceState,
)
from codespec.system.files import FileState
from codespec.system.folders import private_folder, private_opener
from codespec.types import Tokens

PENDING = "pending"
PENDING_S = 3600.0
"""Seconds after which a content that no workspace lists is deleted."""
_ID_BYTES = 4


class TenantFolder:
    """The workspaces of one tenant. One thread at a time.

    forget: told the workspaces that are deleted.
    """

    def __init__(
        self,
        folder: Path,
        tokenizer_hash: str,
        settings: TenantSettings,
        forget: Callable[[list[str]], None],
    ) -> None:
        self._folder = folder
        self._hash = tokenizer_hash
        self._settings = settings
        self._forget = forget

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those of these keys whose contents the tenant has not sent, in any workspace."""
        known = self._pending().keys() | {
            content.key
            for workspace in self._workspaces()
            for segment in self._manifest(workspace).segments
            for content in segment.contents
        }
        return [key for key in dict.fromkeys(keys) if key not in known]

    def add(self, contents: Mapping[str, Sequence[Tokens]]) -> None:
        """Keep contents until a workspace lists them. Raises: QuotaError, OSError."""
        private_folder(self._folder)
        folder = private_folder(self._folder / PENDING)
        pending = self._pending()
        n_bytes = sum(pending.values())
        for key, parts in contents.items():
            raw = msgspec.msgpack.encode([part.tobytes() for part in parts])
            n_bytes += len(raw) - pending.get(key, 0)
            pending[key] = len(raw)
            is_long = n_bytes > _ID_BYTES * self._settings.max_tokens
            if is_long or len(pending) > self._settings.max_files:
                raise QuotaError(
                    "too many contents that no workspace lists", "Open their workspace first."
                )
            with open(folder / key, "wb", opener=private_opener) as file:
                file.write(raw)

    def open(self, workspace: str, change: WorkspaceChange) -> WorkspaceState:
        """Bring a workspace to a new state; at once for all requests that begin later.

        Raises: StaleError, MissingError, QuotaError; IndexBusyError while another process writes
            it; OSError.
        """
        generation = self._store(workspace).generation
        old = self._manifest(workspace)
        files = {entry.path: entry.key for entry in old.files}
        if not change.base:
            files = {}
        elif (now := state_of(files)) != change.base:
            raise StaleError(now)
        for gone in change.gone:
            files.pop(gone, None)
        files.update(change.files)
        if len(files) > self._settings.max_files:
            most = self._settings.max_files
            raise QuotaError(f"a workspace may have {most:,} files", "Exclude some from the index.")
        self._write(workspace, generation, old, files)
        return self._state(workspace)

    def states(self) -> list[WorkspaceState]:
        """All workspaces of the tenant."""
        return [self._state(workspace) for workspace in self._workspaces()]

    def state(self, workspace: str) -> WorkspaceState:
        """A workspace; an unknown one is as an empty one."""
        return self._state(workspace)

    def delete(self, workspace: str) -> None:
        """Delete a workspace. Contents of others stay. Raises: OSError."""
        _remove(self._folder / workspace)
        self._forget([workspace])

    def delete_all(self) -> None:
        """Delete all that the tenant sent, and what was learned from requests without a workspace.
        Raises: OSError."""
        names = list(self._workspaces())
        _remove(self._folder)
        self._forget([*names, ""])

    def clean(self) -> list[str]:
        """Delete from disk what no workspace has listed for `PENDING_S`, and text that no file has
        had for `TenantSettings.removed_s`.

        Returns: workspaces that were rewritten. Raises: OSError.
        """
        self._pending()
        due = [w for w in self._workspaces() if is_due(self._store(w), self._settings.removed_s)]
        return [workspace for workspace in due if self._is_rewritten(workspace)]

    def _is_rewritten(self, workspace: str) -> bool:
        """Rewrite a workspace without such text. Returns: False where another engine does so."""
        store = self._store(workspace)
        try:
            with store.writing():
                old = self._manifest(workspace)
                live = {entry.key for entry in old.files}
                segments = without_removed(store, old.segments, live)
                new = msgspec.structs.replace(old, segments=tuple(segments))
                with marked(store, segments, live):
                    store.write_manifest(new)
                    store.remove_unused(new)
        except IndexBusyError:
            return False
        except DamagedError as e:
            store.mark_damaged(e.args[0])
            return False
        return True

    # ---- on disk

    def _store(self, workspace: str) -> Store:
        return workspace_store(self._folder.parent, self._folder.name, workspace, self._hash)

    def _workspaces(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            for folder in self._folder.iterdir():
                if folder.name != PENDING and folder.is_dir():
                    yield folder.name

    def _manifest(self, workspace: str) -> Manifest:
        """The manifest of a workspace; an empty one where there is none that can be used."""
        store = self._store(workspace)
        with contextlib.suppress(IndexCorruptError):
            found = store.read_manifest()
            if found is not None and found.rules == RULES:
                damaged = store.marked_damaged()
                return found.of_segments([s for s in found.segments if s.name not in damaged])
        return Manifest(store.root, self._hash, RULES)

    def _state(self, workspace: str) -> WorkspaceState:
        manifest = self._manifest(workspace)
        files = {entry.path: entry.key for entry in manifest.files}
        return WorkspaceState(workspace, state_of(files), len(files), _n_tokens(manifest.segments))

    def _pending(self) -> dict[str, int]:
        """Bytes of each pending content, by key. Old ones are deleted."""
        found: dict[str, int] = {}
        before_s = time.time() - PENDING_S
        with contextlib.suppress(FileNotFoundError):
            for file in (self._folder / PENDING).iterdir():
                info = file.stat()
                if info.st_mtime < before_s:
                    file.unlink(missing_ok=True)
                else:
                    found[file.name] = info.st_size
        return found

    def _read_pending(self, key: str) -> list[Tokens] | None:
        try:
            raw = (self._folder / PENDING / key).read_bytes()
            said = msgspec.msgpack.decode(raw, type=list[bytes])
            parts = [np.frombuffer(part, np.int32) for part in said]
        except (OSError, msgspec.DecodeError, ValueError):
            return None
        return parts if key_of(parts) == key else None  # its writing may have been interrupted

    # ---- a new state

    def _write(
        self, workspace: str, generation: FileState, old: Manifest, files: Mapping[str, str]
    ) -> None:
        """generation: of the manifest `old`."""
        live = set(files.values())
        known = {c.key for s in old.segments for c in s.contents}
        new = sorted(live - known)
        elsewhere = self._elsewhere(workspace, new)
        pending = self._pending()
        if missing := [key for key in new if key not in pending and key not in elsewhere]:
            raise MissingError(missing)
        n_live = sum(c.n_tokens for s in old.segments for c in s.contents if c.key in live)
        n_new = sum(
            elsewhere[key][1] if key in elsewhere else pending[key] // _ID_BYTES for key in new
        )
        most = self._settings.max_tokens
        if n_live + n_new > most:
            raise QuotaError(f"a tenant may have {most:,} tokens", "Exclude files from the index.")
        self._make_room(workspace, n_live + n_new)
        private_folder(self._folder)
        store = self._store(workspace)
        with store.writing():
            if store.generation != generation:  # another engine has written it meanwhile
                raise IndexBusyError("the workspace has just been changed", "Ask again.")
            store.remove_unused(old)  # with segments that readers found damaged
            segments = [*old.segments, *self._built(store, new, elsewhere)]
            try:
                segments = compact(store, segments, live)
                if not self._settings.removed_s or _n_tokens(segments) > most:
                    segments = without_removed(store, segments, live)
            except DamagedError as e:
                store.mark_damaged(e.args[0])
                lost = {c.key for s in segments if s.name == e.args[0] for c in s.contents}
                raise MissingError(sorted(lost & live)) from e
            entries = tuple(FileEntry(file, 0, 0, 0, key) for file, key in sorted(files.items()))
            manifest = Manifest(store.root, self._hash, RULES, 0, tuple(segments), entries)
            with marked(store, segments, live):
                store.write_manifest(manifest)
                store.remove_unused(manifest)
            store.mark_used()
        for key in new:
            (self._folder / PENDING / key).unlink(missing_ok=True)

    def _built(
        self, store: Store, new: Sequence[str], elsewhere: Mapping[str, tuple[str, int]]
    ) -> Iterator[SegmentEntry]:
        """Segments of new contents. Raises: MissingError."""
        writer, left = SegmentWriter(store), set(new)
        for key, parts in self._found(new, elsewhere):
            writer.add(key, parts)
            left.remove(key)
            if writer.is_full:
                yield from writer.flush()
        if left:
            raise MissingError(sorted(left))
        yield from writer.flush()

    def _found(
        self, new: Sequence[str], elsewhere: Mapping[str, tuple[str, int]]
    ) -> Iterator[tuple[str, list[Tokens]]]:
        """Those of these contents that can be read: pending ones, and of other workspaces."""
        for key in new:
            if key not in elsewhere and (parts := self._read_pending(key)) is not None:
                yield key, parts
        for workspace in {workspace for workspace, _ in elsewhere.values()}:
            keys = {key for key, (holder, _) in elsewhere.items() if holder == workspace}
            store = self._store(workspace)
            for entry in self._manifest(workspace).segments:
                if keys.isdisjoint(content.key for content in entry.contents):
                    continue
                with contextlib.suppress(IndexCorruptError, DamagedSegmentError):
                    for key, parts, _ in contents_of(store, entry, keys):
                        if key_of(parts) == key:
                            keys.remove(key)
                            yield key, parts

    def _elsewhere(self, workspace: str, keys: Sequence[str]) -> dict[str, tuple[str, int]]:
        """(workspace, tokens) of those of these contents that other workspaces have."""
        wanted, found = set(keys), dict[str, tuple[str, int]]()
        if not wanted:
            return found
        for other in self._workspaces():
            if other != workspace:
                for segment in self._manifest(other).segments:
                    for content in segment.contents:
                        if content.key in wanted:
                            found[content.key] = other, content.n_tokens
        return found

    def _make_room(self, workspace: str, n_tokens: int) -> None:
        """Delete the workspaces that were used least recently, until the tenant keeps its quotas
        with one of `n_tokens`."""
        others = sorted((w for w in self._workspaces() if w != workspace), key=self._used_s)
        sizes = {w: _n_tokens(self._manifest(w).segments) for w in others}
        most = self._settings
        for other in others:
            in_all = n_tokens + sum(sizes.values())
            if in_all <= most.max_tokens and len(sizes) < most.max_workspaces:
                break
            self.delete(other)
            del sizes[other]

    def _used_s(self, workspace: str) -> float:
        try:
            return (self._folder / workspace / USED).stat().st_mtime
        except OSError:
            return 0.0


class TenantStore:
    """The folders of all tenants, each behind a lock of its own. For any threads.

    forget: told the deleted workspaces, as (tenant, workspace); "" stands for requests without
        one.
    reopen: told, likewise, workspaces that were rewritten: whoever maps the old files keeps the
        text that left them.
    """

    def __init__(
        self,
        settings: TenantSettings,
        tokenizer_hash: str,
        forget: Callable[[list[tuple[str, str]]], None] = lambda gone: None,
        reopen: Callable[[list[tuple[str, str]]], None] = lambda changed: None,
    ) -> None:
        self._settings = settings
        self._hash = tokenizer_hash
        self._forget = forget
        self._reopen = reopen
        self._locks: dict[str, threading.Lock] = {}
        self._locks_lock = threading.Lock()
        private_folder(Path(settings.folder))

    @contextlib.contextmanager
    def of(self, tenant: str) -> Generator[TenantFolder, None, None]:
        """The folder of a tenant, by its opaque id, for this thread alone."""
        with self._locks_lock:
            lock = self._locks.setdefault(tenant, threading.Lock())
        with lock:
            yield TenantFolder(
                Path(self._settings.folder) / tenant,
                self._hash,
                self._settings,
                lambda gone: self._forget([(tenant, workspace) for workspace in gone]),
            )

    def tenants(self) -> list[str]:
        """Opaque ids of tenants that have a folder."""
        return [folder.name for folder in Path(self._settings.folder).iterdir() if folder.is_dir()]

    def clean(self, tenant: str) -> None:
        """See `TenantFolder.clean`."""
        with self.of(tenant) as folder:
            rewritten = folder.clean()
        if rewritten:
            self._reopen([(tenant, workspace) for workspace in rewritten])

    def use(self, tenant: str, workspace: str) -> None:
        """Note that a workspace is in use, if there is one: those used least recently go first."""
        workspace_store(Path(self._settings.folder), tenant, workspace, self._hash).mark_used()


def workspace_store(folder: Path, tenant: str, workspace: str, tokenizer_hash: str) -> Store:
    """The index of a tenant's workspace."""
    return Store(f"/{tenant}/{workspace}", tokenizer_hash, folder / tenant / workspace)


def _remove(folder: Path) -> None:
    """Delete a folder, if there is one. Raises: OSError where something of it stays."""
    shutil.rmtree(folder, ignore_errors=True)  # a worker may write its note of use meanwhile
    if folder.exists():
        shutil.rmtree(folder)


def _n_tokens(segments: Iterable[SegmentEntry]) -> int:
    return sum(content.n_tokens for segment in segments for content in segment.contents)
