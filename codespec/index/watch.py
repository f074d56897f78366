"""Watch over a workspace: keeps its index fresh for as long as somebody has the workspace open.

The operating system tells which files may have changed; their content is then looked at, see
`update`. A look at the whole workspace comes at the start, when a branch was switched, when events
were so many that some may be missing, and now and then, as not every file system reports
everything.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import TextIO

import filelock
from watchfiles import Change, watch

from codespec.config import IndexSettings
from codespec.errors import IndexBusyError, IndexCorruptError
from codespec.index import check
from codespec.index.build import BuildCancelledError, BuildProgress, BuildReport
from codespec.index.inotify import FolderEvents
from codespec.index.parsers import Parsers
from codespec.index.store import MANIFEST, WATCH_LOCK, SegmentEntry, Store
from codespec.index.update import EventFilter, apply_changes
from codespec.index.word_encoder import WordEncoder
from codespec.rules.ignore import TOOL_FOLDERS
from codespec.system.files import FileState, state_of

MAX_EVENTS = 4096
"""Events in one batch from which on the whole workspace is looked at: the kernel's queue, which
holds four times as many, may have overflowed."""

_STEP_MS = 50  # quiet for this long: events are handed on
_DEBOUNCE_MS = 400  # after this long even if it is not quiet
_IDLE_MS = 500  # without events: time for other work
_STOP_MS = 100  # so late at most, the end is noticed
# Scans that nothing asked for take this share of the time. One that found much to read, as the
# first of all does, says nothing of what the next one takes: hence the largest pauses.
_MIN_RESCAN_S, _MAX_RESCAN_S = 60.0, 600.0
_RESCAN_SHARE = 0.01
_ELECTION_S = 0.5
_BUSY_S = 0.2
_TROUBLE_S = 30.0
# The same for looks at everything where the system has no events.
_POLL_S, _MAX_POLL_S = 5.0, 60.0
_POLL_SHARE = 0.1

EVERYTHING = frozenset([""])


class Hints:
    """Messages of the parent process over a pipe: a line for each path it knows to have changed,
    and the end of the pipe when the parent ends."""

    def __init__(self, root: str, stop: threading.Event) -> None:
        self._root = root
        self._stop = stop
        self._paths: set[str] = set()
        self._lock = threading.Lock()

    def listen(self, stream: TextIO) -> None:
        """Read lines on a thread of its own; sets `stop` at the end of the stream."""

        def read() -> None:
            with contextlib.suppress(OSError, ValueError):
                for line in stream:
                    path = relevant(self._root, line.rstrip("\n"))
                    if path is not None:
                        with self._lock:
                            self._paths.add(path)
            self._stop.set()

        threading.Thread(target=read, daemon=True, name="codespec-hints").start()

    def take(self) -> set[str]:
        with self._lock:
            paths, self._paths = self._paths, set()
        return paths


def relevant(root: str, path: str) -> str | None:
    """The meaning of an event at an absolute path: the path relative to the root; "" for a look at
    everything; None for an event that changes nothing, or whose path cannot be the name of a
    file."""
    path = os.path.normpath(path)  # "..", as in hints, must not lead out of the workspace
    if path == root:
        return ""
    if not path.startswith(os.path.join(root, "")) or "\0" in path:
        return None
    relative = path[len(root) :].strip(os.sep).replace(os.sep, "/")
    parts = relative.split("/")
    if TOOL_FOLDERS.isdisjoint(parts):
        return relative
    if ".git" in parts:
        i = parts.index(".git")
        inside = parts[i + 1 :]
        # HEAD: another branch. ORIG_HEAD: reset, merge, rebase.
        if inside in (["HEAD"], ["ORIG_HEAD"], ["info", "exclude"]):
            return "/".join(parts[:i])
    return None


def file_events(
    root: str, stop: threading.Event, note: Callable[[str], None] = lambda _: None
) -> Generator[set[str], None, None]:
    """Sets of paths that may have changed, relative to `root`; an empty set at the start, as soon
    as events are recorded, and whenever nothing happens for a while. Ends with `stop`.

    note: told the reason if there are no events.
    """
    try:
        yield from _told_by_linux(root, stop) if sys.platform == "linux" else _told(root, stop)
    except (OSError, RuntimeError) as e:  # watchfiles raises either
        # Too many folders for the system's limit, or a file system without events.
        why = (e.strerror if isinstance(e, OSError) else "") or e
        often = f"every {_POLL_S:.0f} to {_MAX_POLL_S:.0f} s"
        note(f"no file events: {why}; all files are looked at {often} instead")
        yield from _looks(stop)


def _told_by_linux(root: str, stop: threading.Event) -> Generator[set[str], None, None]:
    with FolderEvents(root) as events:
        yield set()
        while not stop.is_set():
            found: set[str] = set()
            idle_at = time.monotonic() + _IDLE_MS / 1000
            while not found and not stop.is_set() and time.monotonic() < idle_at:
                found = _meanings(root, events.wait(_STOP_MS / 1000))
            late_at = time.monotonic() + _DEBOUNCE_MS / 1000
            while found and time.monotonic() < late_at:
                more = events.wait(_STEP_MS / 1000)
                if not more:
                    break
                found |= _meanings(root, more)
            yield found


def _told(root: str, stop: threading.Event) -> Generator[set[str], None, None]:
    def wanted(_: Change, path: str) -> bool:
        return relevant(root, path) is not None

    events = watch(
        root,
        watch_filter=wanted,
        debounce=_DEBOUNCE_MS,
        step=_STEP_MS,
        stop_event=stop,
        rust_timeout=_IDLE_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    )
    for changes in events:
        yield _meanings(root, {path for _, path in changes})


def _looks(stop: threading.Event) -> Generator[set[str], None, None]:
    """Without events: `EVERYTHING` now and then, seldom if a look takes long; empty sets in between
    leave time for hints."""
    look_at = 0.0
    while not stop.wait(_IDLE_MS / 1000):
        began = time.monotonic()
        if began < look_at:
            yield set()
            continue
        yield set(EVERYTHING)
        now = time.monotonic()
        look_at = now + min(max(_POLL_S, (now - began) / _POLL_SHARE), _MAX_POLL_S)


def _meanings(root: str, paths: set[str]) -> set[str]:
    return {p for path in paths if (p := relevant(root, path)) is not None}


class IndexKeeper:
    """Brings one index up to date, event by event. Use it on one thread."""

    def __init__(
        self,
        root: str,
        encoder: WordEncoder,
        settings: IndexSettings,
        stop: threading.Event,
        parsers: Parsers | None = None,
        on_update: Callable[[BuildReport], None] = lambda _: None,
        on_progress: Callable[[BuildProgress], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """root: absolute, links resolved. on_update: called after each change of the index.
        on_progress: called during a change."""
        self.store = Store(root, encoder.tokenizer.hash)
        self._encoder = encoder
        self._parsers = parsers
        self._settings = settings
        self._stop = stop
        self._on_update = on_update
        self._on_progress = on_progress
        self._clock = clock
        self._filter = EventFilter(self.store, settings)
        self._pending: set[str] = set()
        self._rescan_at = clock() + _MIN_RESCAN_S
        self._sound: set[str] = set()
        self._generation: FileState = None
        self._wanted: set[str] = set()
        self._elected_by = 0

    def run(self, notices: Iterable[set[str]], hints: Hints | None = None) -> bool:
        """Handle notices until they end or the workspace is gone. Returns: True if somebody deleted
        the index's folder, and with it the lock by which this process was elected. Each empty
        notice verifies some of the index."""
        self._pending = set(EVERYTHING)
        self._elected_by = self._lock_file()
        for paths in notices:
            if hints is not None:
                paths |= hints.take()
            self.handle(paths)
            if not os.path.isdir(self.store.root):
                return False
            if self._is_deleted():
                return True
        return False

    def handle(self, paths: set[str]) -> None:
        """Handle one notice. One that is empty, or names nothing that is indexed, leaves time for
        other work."""
        if len(paths) > MAX_EVENTS:
            paths = set(EVERYTHING)
        if paths:
            self._pending |= self._filter.affecting(paths)
        if self._clock() >= self._rescan_at or len(self._pending) > MAX_EVENTS:
            self._pending.add("")
        if self._pending:
            self._update()
        else:
            if self._parsers is not None:
                self._parsers.rest()
            self._verify_some()

    def _update(self) -> None:
        paths = self._pending
        # Named paths come first: a look at everything takes longer.
        for part in (paths - EVERYTHING, paths & EVERYTHING):
            if not part or len(part) > MAX_EVENTS:
                continue
            try:
                report = apply_changes(
                    self.store.root,
                    self._encoder,
                    self._settings,
                    part,
                    progress=self._on_progress,
                    parsers=self._parsers,
                    cancelled=self._stop.is_set,
                )
            except IndexBusyError:
                self._stop.wait(_BUSY_S)
                return
            except BuildCancelledError:
                return
            except OSError as e:
                self._wait_out(e)
                return
            if "" in part:
                wait = max(_MIN_RESCAN_S, report.seconds / _RESCAN_SHARE)
                self._rescan_at = self._clock() + min(wait, _MAX_RESCAN_S)
            if report.changed:
                self._on_update(report)
            self._generation, self._wanted = None, {MANIFEST} if report.n_files else set()
        self._pending = set()

    def _verify_some(self) -> None:
        """Verify the segments of which somebody deleted files, if any, or else one segment that was
        not verified yet."""
        try:
            self._look_what_there_is()
            files = set(os.listdir(self.store.folder))
            if MANIFEST in self._wanted - files:
                self._pending |= EVERYTHING
            manifest = self.store.read_manifest() if self._unverified(files) else None
            entries = manifest.segments if manifest else ()
            damaged = [entry for entry in entries if not files >= _files_of(entry)]
            unverified = [entry for entry in entries if entry.name not in self._sound]
            for entry in damaged or unverified[:1]:
                if damages := check.segment_damage(self.store, entry):
                    check.discard(self.store, damages)
                    self._pending |= EVERYTHING
                else:
                    self._sound.add(entry.name)
        except IndexCorruptError:
            self._pending |= EVERYTHING
        except IndexBusyError:
            pass
        except OSError as e:
            self._wait_out(e)

    def _look_what_there_is(self) -> None:
        """Remember the files that the manifest names, if it is a new one."""
        generation = self.store.generation
        if generation not in (None, self._generation):
            manifest = self.store.read_manifest()
            entries = manifest.segments if manifest is not None else ()
            self._wanted = {MANIFEST}.union(*map(_files_of, entries))
            self._generation = generation

    def _wait_out(self, error: OSError) -> None:
        """Pause after an error: most likely a full disk, unless the folder was deleted
        meanwhile."""
        print(f"cannot update the index: {error.strerror}", file=sys.stderr)
        for _ in range(round(_TROUBLE_S / _ELECTION_S)):
            if self._is_deleted() or self._stop.wait(_ELECTION_S):
                return

    def _is_deleted(self) -> bool:
        """True if the lock is gone by which this process was elected."""
        return self._lock_file() != self._elected_by

    def _lock_file(self) -> int:
        """Identity of the watch lock's file, another for each one made; 0 if there is none."""
        state = state_of(self.store.folder / WATCH_LOCK)
        return 0 if state is None else state[1]

    def _unverified(self, files: set[str]) -> bool:
        names = {name.removesuffix(".seg") for name in files if name.endswith(".seg")}
        marked = self.store.marked_damaged()
        self._sound = (self._sound & names) - marked
        for name in marked & names:
            self.store.unmark(name)
        return not names <= self._sound or not files >= self._wanted


def _files_of(entry: SegmentEntry) -> set[str]:
    return {f"{entry.name}.seg", *([f"{entry.symbols}.sym"] if entry.symbols else [])}


@contextlib.contextmanager
def elected(store: Store, stop: threading.Event) -> Generator[bool, None, None]:
    """Wait until no other process watches this workspace for the same tokenizer. Yields: False if
    `stop` was set meanwhile. A watcher that dies is succeeded within a second."""
    lock = filelock.FileLock(store.folder / WATCH_LOCK, mode=0o600)
    held = False
    while not held and not stop.is_set():
        store.make_folder()
        # Somebody else watches, or the folder was deleted meanwhile.
        with contextlib.suppress(filelock.Timeout, FileNotFoundError):
            lock.acquire(timeout=_ELECTION_S, poll_interval=_ELECTION_S / 2)
            held = True
    try:
        yield held
    finally:
        if held:
            lock.release()
