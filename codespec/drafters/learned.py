"""What a planner learned, by the names of sources, and the file that it is kept in.

The numbers of sources depend on which drafters are there and on the order in which they register,
so nothing on disk is told by number. A source that a file does not know starts with weights of 0,
which is neutral, and learns.

A file is 8 bytes that name the format, 4 of CRC-32 of all that follows, 4 of the header's length,
the header (JSON: `sources`, their names; `type`, "<f4" or "<f2") and the numbers: the weights that
all sources share, those of each source, the recalibration of each source. A prior has no
recalibration.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.files import write_atomically
from codespec.native import Planner
from codespec.types import Source

State = npt.NDArray[np.float32]

_MAGIC = b"CSACC002"
_HEAD = len(_MAGIC) + 8
# The format before: eight sources, told by number, and tables in another order.
_OLD_MAGIC = b"CSACC001"
_OLD_SOURCES = (
    "prefix", "suffix", "repository", "draft-model", "other", "edits", "buffers", "answers",
)  # fmt: skip
# Its tables: of those with a source, (cells before the source's axis, cells after it); of the
# others, all cells.
_OLD_TABLES: tuple[tuple[int, int] | int, ...] = (
    (2, 96), (1, 64), 256, 192, 512, 96, 64, 64, (1, 16), (1, 8), 64, (1, 8), (1, 64), 128, 128,
    128, (1, 64), (1, 128),
)  # fmt: skip


@dataclass(frozen=True)
class Learned:
    """What was learned of drafts: numbers, from which no text can be read.

    shared:      (Planner.n_shared,) float32 weights that all sources share.
    weights:     source's name -> (Planner.n_by_source,) float32.
    corrections: source's name -> (Planner.n_correction,) float32, its recalibration; none in a
        prior.
    """

    shared: State
    weights: Mapping[str, State]
    corrections: Mapping[str, State]

    def state(self, sources: Sequence[str]) -> State:
        """As `Planner.load` takes it, of a planner for these sources, in the order of their
        numbers."""
        unknown, unseen = _zeros(Planner.n_by_source), _zeros(Planner.n_correction)
        return np.concatenate(
            [
                self.shared,
                *(self.weights.get(name, unknown) for name in sources),
                *(self.corrections.get(name, unseen) for name in sources),
            ]
        )


def learned_of(state: State, sources: Sequence[str]) -> Learned | None:
    """What `Planner.state` says, or weights alone, of a planner for these sources; None where
    the size is another one."""
    n = len(sources)
    sizes = [Planner.n_shared, *n * [Planner.n_by_source], *n * [Planner.n_correction]]
    if len(state) == sum(sizes[: 1 + n]):
        sizes = sizes[: 1 + n]
    if len(state) != sum(sizes):
        return None
    shared, *rest = np.split(state, list(itertools.accumulate(sizes))[:-1])
    weights, corrections = rest[:n], rest[n:]
    return Learned(
        shared,
        dict(zip(sources, weights, strict=True)),
        dict(zip(sources, corrections, strict=False)),
    )


def source_names() -> list[str]:
    """Names of all registered sources, in the order of their numbers."""
    return [source.label for source in Source.all()]


def write_learned(path: Path, learned: Learned, kind: str = "<f4") -> None:
    """Replace the file by this. kind: "<f4" or "<f2". Raises: OSError."""
    names = list(learned.weights)
    known = names if learned.corrections else []
    header = json.dumps({"sources": names, "type": kind}).encode()
    parts = [learned.shared, *learned.weights.values(), *(learned.corrections[k] for k in known)]
    body = len(header).to_bytes(4, "little") + header + np.concatenate(parts).astype(kind).tobytes()
    write_atomically(path, _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)


def read_learned(path: Path) -> Learned | None:
    """What `write_learned` wrote, or the version of codespec before that; None for a file that is
    missing or anything else."""
    try:
        return parse_learned(path.read_bytes())
    except OSError:
        return None


def parse_learned(stored: bytes) -> Learned | None:
    """As `read_learned`, of the file's bytes."""
    magic, check, body = stored[:8], stored[8:12], stored[12:]
    if zlib.crc32(body).to_bytes(4, "little") != check:
        return None
    if magic == _OLD_MAGIC:
        return _converted(body)
    n_header = int.from_bytes(body[:4], "little")
    numbers = body[4 + n_header :]
    try:
        header = json.loads(body[4 : 4 + n_header])
        names, kind = [str(name) for name in header["sources"]], header["type"]
    except (ValueError, KeyError, TypeError):
        return None
    if magic != _MAGIC or kind not in ("<f4", "<f2") or len(numbers) % int(kind[2]):
        return None
    return learned_of(np.frombuffer(numbers, kind).astype(np.float32), names)


def _converted(body: bytes) -> Learned | None:
    """What a file of the version before holds."""
    n_sources = len(_OLD_SOURCES)
    sizes = [t if isinstance(t, int) else n_sources * t[0] * t[1] for t in _OLD_TABLES]
    n_corrections = n_sources * Planner.n_correction
    if len(body) != 4 * (sum(sizes) + n_corrections):
        return None
    numbers = np.frombuffer(body, "<f4").astype(np.float32)
    tables = np.split(numbers, list(itertools.accumulate(sizes)))
    corrections = np.split(tables.pop(), n_sources)
    shared: list[State] = []
    by_source: list[State] = []
    for table, shape in zip(tables, _OLD_TABLES, strict=True):
        if isinstance(shape, int):
            shared.append(table)
        else:
            before, after = shape
            in_order = table.reshape(before, n_sources, after).transpose(1, 0, 2)
            by_source.append(in_order.reshape(n_sources, -1))
    weights = np.concatenate(by_source, axis=1)
    return Learned(
        np.concatenate(shared),
        dict(zip(_OLD_SOURCES, weights, strict=True)),
        dict(zip(_OLD_SOURCES, corrections, strict=True)),
    )


def _zeros(n: int) -> State:
    return np.zeros(n, np.float32)
