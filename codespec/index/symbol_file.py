"""Symbol file: the definitions in one segment's contents, found by name without reading the rest.

magic, version, n             4 + 4 + 8 bytes
checksum of all that follows  16 bytes
hashes of the names           n x uint64, ascending
places of the records         (n + 1) x uint64
records                       msgpack: number of the content, symbol
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from codespec.errors import IndexCorruptError
from codespec.native import map_file
from codespec.syntax.symbols import Symbol

_MAGIC = b"CSYM"
_VERSION = 1
_HEADER = struct.Struct("<4sIQ16s")


class _Record(msgspec.Struct, frozen=True, array_like=True):
    content: int
    symbol: Symbol


_decoder = msgspec.msgpack.Decoder(_Record)


def pack_symbols(contents: Sequence[Sequence[Symbol]]) -> bytes:
    """Bytes of a symbol file. contents: the symbols of each content of a segment. Equal contents
    give equal bytes."""
    encode = msgspec.msgpack.Encoder().encode
    rows = [(hash_of(s.name), encode(_Record(i, s))) for i, c in enumerate(contents) for s in c]
    rows.sort(key=lambda row: row[0])  # stable: files in order, lines in order
    hashes = np.array([h for h, _ in rows], "<u8")
    places = np.zeros(len(rows) + 1, "<u8")
    np.cumsum([len(data) for _, data in rows], out=places[1:])
    body = b"".join((hashes.tobytes(), places.tobytes(), *(data for _, data in rows)))
    return _HEADER.pack(_MAGIC, _VERSION, len(rows), _checksum(body)) + body


class SymbolFile:
    """A mapped symbol file. Every read is bounds-checked: damage, or truncation while it is open,
    loses symbols and nothing else."""

    def __init__(self, path: Path) -> None:
        """Map the file; takes well under a millisecond. Raises: IndexCorruptError."""
        try:
            self._data = map_file(path).data
            magic, version, n, self._wanted = _HEADER.unpack_from(self._data)
            at = _HEADER.size
            if magic != _MAGIC or version != _VERSION or n > len(self._data):
                raise ValueError("its header is wrong")
            self._hashes: npt.NDArray[np.uint64] = np.frombuffer(self._data, "<u8", n, at)
            self._places: npt.NDArray[np.uint64] = np.frombuffer(
                self._data, "<u8", n + 1, at + 8 * n
            )
            self._blob = at + 8 * (2 * n + 1)
            if self._blob + int(self._places[-1]) != len(self._data):
                raise ValueError("its length is wrong")
        except (OSError, ValueError, struct.error) as e:
            raise IndexCorruptError(
                f"{path}: symbols cannot be used: {e}", "They are built again."
            ) from None

    def may_have(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """True for each hash (see `hash_of`) of a name that is defined; shape (n,) to shape (n,).
        One in 10^13 names that is not defined is reported as well. A fraction of a microsecond
        each."""
        if not len(self._hashes):
            return np.zeros(len(hashes), np.bool_)
        places = np.searchsorted(self._hashes, hashes)
        return self._hashes[np.minimum(places, len(self._hashes) - 1)] == hashes

    def find(self, name: str) -> Iterator[tuple[int, Symbol]]:
        """(number of the content, symbol) of each definition of a name."""
        wanted = np.uint64(hash_of(name))
        low = int(np.searchsorted(self._hashes, wanted, "left"))
        high = int(np.searchsorted(self._hashes, wanted, "right"))
        return (row for row in self._rows(low, high) if row[1].name == name)

    def __iter__(self) -> Iterator[tuple[int, Symbol]]:
        return self._rows(0, len(self._hashes))

    def require_sound(self) -> None:
        """Compare every byte with the checksum; 1 ms a MB. Raises: IndexCorruptError."""
        if not self.is_sound():
            raise IndexCorruptError("symbols are damaged", "They are built again.")

    def is_sound(self) -> bool:
        """True if the whole file matches its checksum."""
        return _checksum(self._data[_HEADER.size :]) == self._wanted

    def _rows(self, low: int, high: int) -> Iterator[tuple[int, Symbol]]:
        for i in range(low, high):
            start, end = (self._blob + int(p) for p in self._places[i : i + 2])
            try:
                record = _decoder.decode(self._data[start:end])
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            yield record.content, record.symbol


def hash_of(name: str) -> int:
    data = name.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _checksum(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
