"""Record of contents that killed a process which read them.

tree-sitter and tokenizers are native code: input made for it can overflow their stack or take all
memory, and the process is gone. The indexer sees a parser's death, but not its own, so before it
tokenises a file it writes the content's key down; the next process finds the keys left over and
gives each a strike. After one strike a file is tokenised as text without a parse; after two it is
left out. A file that was merely in work when somebody ended the indexer loses its parse until it
changes, which costs next to nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from pathlib import Path

import msgspec

from codespec.system.files import write_atomically
from codespec.system.folders import private_opener

MAX_KEYS = 10_000
_KEY_BYTES = 64
_BLANK = b" " * _KEY_BYTES


class Strikes:
    """Strikes by content, for the one writer of an index. n_slots: contents that may be in work at
    a time."""

    def __init__(self, folder: Path, n_slots: int) -> None:
        self._path = folder / "strikes.json"
        self._lock = threading.Lock()
        self._counts = self._read()
        in_flight = folder / "in-flight"
        with contextlib.suppress(OSError):
            left = in_flight.read_bytes().decode("ascii", "replace").split()
            for key in left:
                self._counts[key] = self._counts.pop(key, 0) + 1
            if left:
                self._write()
        with open(in_flight, "wb", opener=private_opener) as file:
            file.write(_BLANK * n_slots)
        # A handle for each slot: threads must not share a file position. Unbuffered: what is
        # written must be with the kernel before the process can die.
        self._slots = [open(in_flight, "rb+", buffering=0) for _ in range(n_slots)]  # noqa: SIM115

    def count(self, key: str) -> int:
        return self._counts.get(key, 0)

    def add(self, key: str) -> None:
        """Give a content a strike: it killed a parser. Thread-safe."""
        with self._lock:
            self._counts[key] = self._counts.pop(key, 0) + 1
            self._write()

    @contextlib.contextmanager
    def in_work(self, slot: int, key: str) -> Generator[None, None, None]:
        """Mark a content as in work in this slot: if the process dies inside, `key` gets a strike.
        An exception is no death."""
        self._mark(slot, key.encode().ljust(_KEY_BYTES))
        try:
            yield
        finally:
            self._mark(slot, _BLANK)

    def close(self) -> None:
        for file in self._slots:
            file.close()

    def _mark(self, slot: int, mark: bytes) -> None:
        file = self._slots[slot]
        file.seek(slot * _KEY_BYTES)
        file.write(mark)

    def _read(self) -> dict[str, int]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.DecodeError):
            return {}  # losing it costs one more death of the indexer

    def _write(self) -> None:
        newest = dict(list(self._counts.items())[-MAX_KEYS:])
        write_atomically(self._path, msgspec.json.encode(newest))
