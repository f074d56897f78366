"""One file as the index stores it: selected parts as tokens, or a reason why there are none."""

from __future__ import annotations

import hashlib
import os
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from codespec.index import selection
from codespec.index.parsers import ParserDiedError, Parsers
from codespec.index.selection import LeftOut, SelectedText
from codespec.index.store import FileEntry
from codespec.index.strikes import Strikes
from codespec.index.walk import FileCandidate, is_binary, read_file
from codespec.index.word_encoder import WordEncoder
from codespec.languages.registry import TEXT, language_of
from codespec.syntax import text
from codespec.syntax.symbols import Symbol
from codespec.types import Tokens

MAX_STRIKES = 2
_N_AHEAD = 64
_CLOSED = -1  # in place of a slot


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file after it was read. docs: the tokens of each selected part, and symbols: its
    definitions; both only if its content is new to the index. crashed: True if it killed the
    parser."""

    entry: FileEntry
    docs: tuple[Tokens, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    crashed: bool = False


class DocumentReader:
    """Reads, parses and tokenises files on threads. Close it after use."""

    def __init__(
        self,
        root: str,
        state_folder: Path,
        encoder: WordEncoder,
        parsers: Parsers | None,
        max_file_bytes: int,
        is_known: Callable[[str], bool],
    ) -> None:
        """state_folder: where `Strikes` keeps its record.
        parsers: None parses files in this process, one at a time.
        is_known: is asked on any thread; True if a content of this key is stored."""
        self._root = root
        self._max_file_bytes = max_file_bytes
        self._is_known = is_known
        self._encoder = encoder
        self._parsers = parsers
        n_threads = parsers.n if parsers is not None else 1
        self._strikes = Strikes(state_folder, n_threads)
        self._n_slots = n_threads
        self._slots: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(n_threads):
            self._slots.put(slot)
        self._pool = ThreadPoolExecutor(n_threads, "codespec-index")

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        # The pool does not wait for a thread whose start was interrupted, by a request to end.
        for _ in range(self._n_slots):
            self._slots.get()
        self._strikes.close()
        self._slots.put(_CLOSED)

    def read_all(
        self,
        candidates: Iterable[FileCandidate],
        unchanged: Callable[[FileCandidate], FileEntry | None],
    ) -> Iterator[IndexedFile | None]:
        """A result for each candidate, in order, computed a little ahead of its use. None stands
        for a file that is gone or not ours to read.

        unchanged: returns the known entry of a file that need not be read, else None.
        """
        ahead: deque[Future[IndexedFile | None] | IndexedFile] = deque()
        for candidate in candidates:
            entry = unchanged(candidate)
            ahead.append(
                IndexedFile(entry) if entry else self._pool.submit(self._read, candidate.path)
            )
            while len(ahead) > _N_AHEAD:
                yield _result(ahead.popleft())
        while ahead:
            yield _result(ahead.popleft())

    def _read(self, path: str) -> IndexedFile | None:
        """Read, parse and tokenise one file. Runs on a worker thread."""
        loaded = read_file(os.path.join(self._root, path), self._max_file_bytes)
        if loaded is None:
            return None
        data, s = loaded

        def left_out(why_not: LeftOut) -> IndexedFile:
            return IndexedFile(FileEntry(path, s.size, s.mtime_ns, s.ctime_ns, "", why_not.value))

        if why_not := why_left_out(path, data):
            return left_out(why_not)
        source = text.normalise(data.decode()).encode()
        key = _key(path, source)
        n_strikes = self._strikes.count(key)
        if n_strikes >= MAX_STRIKES:
            return left_out(LeftOut.ENDED_INDEXER)
        entry = FileEntry(path, s.size, s.mtime_ns, s.ctime_ns, key)
        if self._is_known(key):
            return IndexedFile(entry)
        chosen: SelectedText | None = None
        crashed = False
        if self._parsers is not None and n_strikes == 0 and language_of(path) != TEXT:
            try:
                chosen = self._parsers.select(path, source)
            except ParserDiedError:
                self._strikes.add(key)
                crashed, n_strikes = True, 1
        slot = self._slots.get()
        if slot == _CLOSED:
            self._slots.put(_CLOSED)
            return None
        try:
            with self._strikes.in_work(slot, key):
                chosen = chosen or selection.select(path, source, parse=n_strikes == 0)
                docs = tuple(self._encoder.encode(source[a:b]) for a, b in chosen.spans)
        finally:
            self._slots.put(slot)
        if not any(len(d) for d in docs):
            return left_out(chosen.why_not or LeftOut.EMPTY)
        return IndexedFile(entry, docs, chosen.symbols, crashed)


def why_left_out(path: str, data: bytes) -> LeftOut | None:
    """The reason not to index a file, as far as its name and bytes tell without a parse; None if
    they tell of none."""
    if why_not := selection.why_not_by_name(path):
        return why_not
    return LeftOut.BINARY if is_binary(data) else None


def _result(item: Future[IndexedFile | None] | IndexedFile) -> IndexedFile | None:
    return item if isinstance(item, IndexedFile) else item.result()


def _key(path: str, source: bytes) -> str:
    """Hash that names a content. It includes the language, which decides what is selected."""
    digest = hashlib.blake2b(language_of(path).encode() + b"\0", digest_size=16)
    digest.update(source)
    return digest.hexdigest()
