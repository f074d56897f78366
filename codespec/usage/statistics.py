"""Statistics of suggestions: shown, accepted, kept, how fast. They stay on this machine.

Numbers only: no text, no names of files. One small database in the user's data folder, which any
number of editor windows write and `codespec stats` reads or deletes.

    stats = Stats()                          # in an editor's server; nothing is opened yet
    stats.shown("42", "python", 17, 83.0)
    stats.accepted("42", 17)
    stats.retained("42", 12)                 # a while later
    stats.typed("python", 30)
    stats.flush()                            # on a thread, now and then, and at the end
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import msgspec

from codespec.errors import CodespecError, InputError
from codespec.system.folders import data_dir, data_path, private_opener
from codespec.usage import edit_counts
from codespec.usage.edit_counts import EditCounts
from codespec.usage.suppression import PlaceKind

_R = TypeVar("_R")

log = logging.getLogger(__name__)

MAX_AGE_DAYS = 365
MAX_HABIT = 200
"""Most shown suggestions that a habit counts; beyond that both of its counts are halved."""
MAX_PENDING = 10_000
"""Most events kept in memory while the database cannot be written; later ones are lost."""
_BUSY_S = 2.0
_FILE = "stats.db"
_DAY_S = 86_400.0

VERSION = 1
"""Version of the database's layout, in its `user_version`; 0 where none was written yet. Habits of
version 0 may be stored by sentences."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS suggestion (
    id TEXT PRIMARY KEY, at REAL, language TEXT, n_chars INTEGER, latency_ms REAL,
    cached INTEGER, n_accepted INTEGER DEFAULT 0, n_retained INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS typed (
    day INTEGER, language TEXT, n_chars INTEGER, PRIMARY KEY (day, language)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS habit (
    language TEXT, kind TEXT, n_shown REAL, n_accepted REAL, PRIMARY KEY (language, kind)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outcome (
    language TEXT, kind TEXT, n_shown REAL, said REAL, n_kept REAL, PRIMARY KEY (language, kind)
) WITHOUT ROWID;
"""
_SHOWN = (
    "INSERT OR IGNORE INTO suggestion (id, at, language, n_chars, latency_ms, cached) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
# Accepting by word reports a growing total; a late or repeated report must not lower it.
_ACCEPTED = "UPDATE suggestion SET n_accepted = max(n_accepted, min(?, n_chars)) WHERE id = ?"
_LONGER = "UPDATE suggestion SET n_chars = max(n_chars, ?) WHERE id = ?"
_RETAINED = "UPDATE suggestion SET n_retained = min(?, n_accepted) WHERE id = ?"
_HABIT = (
    "INSERT INTO habit VALUES (?, ?, ?, ?) ON CONFLICT (language, kind) DO UPDATE SET "
    "n_shown = n_shown + excluded.n_shown, n_accepted = n_accepted + excluded.n_accepted"
)
_OUTCOME = (
    "INSERT INTO outcome VALUES (?, ?, ?, ?, ?) ON CONFLICT (language, kind) DO UPDATE SET "
    "n_shown = n_shown + excluded.n_shown, said = said + excluded.said, "
    "n_kept = n_kept + excluded.n_kept"
)
_KINDS = {kind.value: kind for kind in PlaceKind}
_FORMER_KINDS = {
    "in comments": PlaceKind.COMMENT,
    "before closing punctuation": PlaceKind.BEFORE_CLOSING,
    "within a line": PlaceKind.WITHIN_LINE,
    "on empty lines": PlaceKind.EMPTY_LINE,
    "below a line that is whole": PlaceKind.BELOW,
}
"""Kinds by the sentences that stood in the database before there were keys."""
_RENAMED = (
    "INSERT INTO habit SELECT language, ?, n_shown, n_accepted FROM habit WHERE kind = ? "
    "ON CONFLICT (language, kind) DO UPDATE SET "
    "n_shown = n_shown + excluded.n_shown, n_accepted = n_accepted + excluded.n_accepted"
)
_HALVED = "UPDATE habit SET n_shown = n_shown / 2, n_accepted = n_accepted / 2 WHERE n_shown > ?"
_HALVED_OUTCOMES = (
    "UPDATE outcome SET n_shown = n_shown / 2, said = said / 2, n_kept = n_kept / 2 "
    "WHERE n_shown > ?"
)
_TYPED = (
    "INSERT INTO typed VALUES (?, ?, ?) "
    "ON CONFLICT (day, language) DO UPDATE SET n_chars = n_chars + excluded.n_chars"
)

# Rows as they are read: SQLite keeps anything in any column. What is infinite is damaged.
_Number = Annotated[float, msgspec.Meta(lt=sys.float_info.max)]
_Shown = tuple[str, _Number, _Number, _Number, _Number, _Number | None]
_Typed = tuple[str, _Number]
_Habit: TypeAlias = tuple[str, str, _Number, _Number]
_Outcome: TypeAlias = tuple[str, str, _Number, _Number, _Number]


class LanguageStats(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of one language, or of all. Characters are those of the suggested text.

    n_retained_chars: accepted characters that were still there a while later, of n_looked_at_chars
        accepted characters that were looked at.
    n_typed_chars: characters that came into documents in any other way, one at a time.
    model_ms: p50, p95 of suggestions that ran the model, None without any; cached_ms: of the
        others.
    """

    language: str
    n_shown: int
    n_accepted: int
    n_shown_chars: int
    n_accepted_chars: int
    n_retained_chars: int
    n_looked_at_chars: int
    n_typed_chars: int
    model_ms: tuple[float, float] | None
    cached_ms: tuple[float, float] | None

    @property
    def acceptance(self) -> float:
        """Share of shown suggestions of which any part was accepted."""
        return self.n_accepted / self.n_shown if self.n_shown else 0.0

    @property
    def written_share(self) -> float:
        """Share of new code that completion wrote."""
        total = self.n_accepted_chars + self.n_typed_chars
        return self.n_accepted_chars / total if total else 0.0


class Stats:
    """Records events in memory, at no cost; `flush` writes them. Thread-safe. Never raises on
    errors of the disk: numbers are lost then, nothing else."""

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """path: the database's; None: the usual one. clock: seconds since the epoch."""
        self._path = path
        self._clock = clock
        self._pending: list[tuple[str, tuple[object, ...]]] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def shown(
        self, id: str, language: str, n_chars: int, latency_ms: float, *, cached: bool = False
    ) -> None:
        """Record a suggestion that was shown. id: unique among all of a user's; a second report of
        one changes nothing. n_chars: its characters. latency_ms: from the request to the answer.
        cached: True if it did not run the model."""
        at = self._clock()
        self._add(_SHOWN, (id, at, _name(language), n_chars, latency_ms, int(cached)))

    def accepted(self, id: str, n_chars: int, n_offered: int = 0) -> None:
        """Record that `n_chars` characters of a suggestion, from its start, were accepted up to
        now. n_offered: characters of the whole text offered, which may be a longer alternative to
        the one that was shown."""
        self._add(_LONGER, (n_offered, id))
        self._add(_ACCEPTED, (n_chars, id))

    def retained(self, id: str, n_chars: int) -> None:
        """Record that `n_chars` of a suggestion's accepted characters are still in the document."""
        self._add(_RETAINED, (n_chars, id))

    def typed(self, language: str, n_chars: int) -> None:
        """Record characters that came into a document by typing."""
        self._add(_TYPED, (int(self._clock() // _DAY_S), _name(language), n_chars))

    def habit(self, language: str, kind: PlaceKind, n_shown: int, n_accepted: int) -> None:
        """Record further suggestions at a kind of place that were shown, or accepted."""
        self._add(_HABIT, (_name(language), kind.value, n_shown, n_accepted))

    def outcome(
        self, language: str, kind: PlaceKind, n_shown: int, said: float, n_kept: int
    ) -> None:
        """Record further suggestions at a kind of place that were shown, with the sum of their
        probabilities, or kept."""
        self._add(_OUTCOME, (_name(language), kind.value, n_shown, said, n_kept))

    def next_edit(self, language: str, kind: str, n_shown: int, n_accepted: int) -> None:
        """Record further next edits of a kind that were shown, or accepted."""
        day = int(self._clock() // _DAY_S)
        self._add(edit_counts.ADD, (day, _name(language), kind, n_shown, n_accepted))

    def next_edits(self) -> list[EditCounts]:
        """Next edits by kind, as written up to now."""
        return edit_counts.by_kind(self._read(edit_counts.READ, edit_counts.Row))

    def outcomes(self) -> dict[tuple[str, PlaceKind], tuple[float, float, float]]:
        """(language, kind of place) -> (shown, said, kept), read as `habits` are."""
        found = self._read("SELECT language, kind, n_shown, said, n_kept FROM outcome", _Outcome)
        return {(row[0], _KINDS[row[1]]): row[2:] for row in found if row[1] in _KINDS}

    def habits(self) -> dict[tuple[str, PlaceKind], tuple[float, float]]:
        """(language, kind of place) -> (shown, accepted) as written up to now; about a millisecond,
        on any thread. Kinds that only a later codespec knows are left out."""
        return _by_kind(self._read("SELECT language, kind, n_shown, n_accepted FROM habit", _Habit))

    def _read(self, question: str, row: type[_R]) -> list[_R]:
        """The rows that answer a question; [] where the database cannot be read."""
        try:
            path = self._path or default_path()
            if not path.is_file():
                return []
            with _open_known(path) as db:
                return msgspec.convert(db.execute(question).fetchall(), list[row])
        except (sqlite3.Error, msgspec.ValidationError, OSError, CodespecError) as e:
            log.warning("statistics were not read: %s", type(e).__name__)
            return []

    def flush(self) -> None:
        """Write the recorded events: about a millisecond, on any thread."""
        with self._lock:
            pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            with self._writing, _open_known(self._path) as db, db:
                for statement, values in pending:
                    # A value that no database can hold (half a character, a huge number) is lost
                    # alone.
                    with suppress(UnicodeError, OverflowError):
                        db.execute(statement, values)
                _rename_kinds(db)
                db.execute(f"PRAGMA user_version = {VERSION}")
                db.execute(_HALVED, (MAX_HABIT,))
                db.execute(_HALVED_OUTCOMES, (MAX_HABIT,))
                oldest = self._clock() - MAX_AGE_DAYS * _DAY_S
                db.execute("DELETE FROM suggestion WHERE at < ?", (oldest,))
                db.execute("DELETE FROM typed WHERE day < ?", (oldest // _DAY_S,))
                db.execute(edit_counts.DELETE_OLD, (oldest // _DAY_S,))
        except (sqlite3.Error, OSError, CodespecError) as e:
            log.warning("statistics were not written: %s", type(e).__name__)
            with self._lock:  # until next time
                self._pending = (pending + self._pending)[:MAX_PENDING]

    def _add(self, statement: str, values: tuple[object, ...]) -> None:
        with self._lock:
            if len(self._pending) < MAX_PENDING:
                self._pending.append((statement, values))


def summary(
    days: float | None = None, path: Path | None = None, clock: Callable[[], float] = time.time
) -> list[LanguageStats]:
    """Statistics of all languages together, as "all", then of each, most shown first; empty if
    nothing was shown.

    days: of how many last days; None: of all time.
    Raises: InputError when the database cannot be read.
    """
    path = path or default_path()
    if not path.is_file():
        return []
    since = 0.0 if days is None else max(0.0, clock() - days * _DAY_S)
    try:
        with _open_known(path) as db:
            rows = db.execute(
                "SELECT language, n_chars, latency_ms, cached, n_accepted, n_retained "
                "FROM suggestion WHERE at >= ?",
                (since,),
            ).fetchall()
            typed = db.execute(
                "SELECT language, n_chars FROM typed WHERE day >= ?", (int(since // _DAY_S),)
            ).fetchall()
        rows, typed = msgspec.convert((rows, typed), tuple[list[_Shown], list[_Typed]])
    except (sqlite3.Error, msgspec.ValidationError) as e:
        raise InputError(
            f"{path}: the statistics cannot be read: {e}",
            "Try again; if it stays so: codespec stats --delete",
        ) from None
    languages = {row[0] for row in rows} | {row[0] for row in typed}
    each = [
        _summarise(name, [r for r in rows if r[0] == name], [t for t in typed if t[0] == name])
        for name in sorted(languages)
    ]
    each.sort(key=lambda s: -s.n_shown)
    return [_summarise("all", rows, typed), *each] if each else []


def delete(path: Path | None = None) -> bool:
    """Delete all statistics. Returns: False if there were none.

    Editors may have the file open, so its content goes first.
    """
    path = path or default_path()
    if not path.is_file():
        return False
    try:
        with _open(path) as db:
            # The tables, too, as those of another version may be what cannot be read.
            with db:
                tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                for (name,) in tables.fetchall():
                    db.execute('DROP TABLE "{}"'.format(name.replace('"', '""')))
                db.execute("PRAGMA user_version = 0")
            db.execute("VACUUM")
    except sqlite3.Error:
        path.unlink(missing_ok=True)  # a damaged one
    return True


def default_path() -> Path:
    return data_path() / _FILE


@contextmanager
def _open(path: Path | None) -> Generator[sqlite3.Connection]:
    try:
        path = path or data_dir() / _FILE
        # Files that SQLite puts beside it get its permissions.
        os.close(private_opener(path, os.O_RDWR | os.O_CREAT))
        with closing(sqlite3.connect(path, timeout=_BUSY_S)) as db:
            yield db
    except UnicodeDecodeError:  # SQLite's message says what is damaged in its own bytes
        raise sqlite3.DatabaseError("it is damaged") from None


@contextmanager
def _open_known(path: Path | None) -> Generator[sqlite3.Connection]:
    """The database with its tables. Raises: sqlite3.DatabaseError for one in a later layout, which
    stays as it is."""
    with _open(path) as db:
        ((version,),) = db.execute("PRAGMA user_version").fetchall()
        if version > VERSION:
            raise sqlite3.DatabaseError("a later codespec wrote it")
        db.executescript(_SCHEMA + edit_counts.SCHEMA)
        yield db


def _by_kind(rows: Sequence[_Habit]) -> dict[tuple[str, PlaceKind], tuple[float, float]]:
    found: dict[tuple[str, PlaceKind], tuple[float, float]] = {}
    for language, name, n_shown, n_accepted in rows:
        kind = _KINDS.get(name) or _FORMER_KINDS.get(name)
        if kind is not None:
            shown, accepted = found.get((language, kind), (0.0, 0.0))
            found[language, kind] = shown + n_shown, accepted + n_accepted
    return found


def _rename_kinds(db: sqlite3.Connection) -> None:
    """Give habits that are stored by a sentence their key, in the caller's transaction. Looked for
    at each write, as an older codespec may write sentences at any time."""
    for former, kind in _FORMER_KINDS.items():
        db.execute(_RENAMED, (kind.value, former))
        db.execute("DELETE FROM habit WHERE kind = ?", (former,))


def _name(language: str) -> str:
    return language[:40] or "text"


def _summarise(language: str, rows: Sequence[_Shown], typed: Sequence[_Typed]) -> LanguageStats:
    looked_at = [(r[5], r[4]) for r in rows if r[5] is not None]
    return LanguageStats(
        language=language,
        n_shown=len(rows),
        n_accepted=sum(1 for r in rows if r[4]),
        n_shown_chars=int(sum(r[1] for r in rows)),
        n_accepted_chars=int(sum(r[4] for r in rows)),
        n_retained_chars=int(sum(kept for kept, _ in looked_at)),
        n_looked_at_chars=int(sum(accepted for _, accepted in looked_at)),
        n_typed_chars=int(sum(t[1] for t in typed)),
        model_ms=_percentiles([r[2] for r in rows if not r[3]]),
        cached_ms=_percentiles([r[2] for r in rows if r[3]]),
    )


def _percentiles(values: list[float]) -> tuple[float, float] | None:
    if not values:
        return None
    values.sort()
    return values[len(values) // 2], values[min(len(values) - 1, int(len(values) * 0.95))]
