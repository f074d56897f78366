"""Learned weights of a planner, by the names of sources, and their file format.

The numbers of sources depend on which drafters are there and on the order in which they register,
so files name sources. A source that a file lacks starts with weights of 0, which is neutral, and
learns.

A file is 8 bytes that name the format, 4 of CRC-32 of all that follows, 4 of the header's length,
the header (JSON: `sources`, their names; `type`, "<f4" or "<f2") and the numbers: the weights that
all sources share, then those of each source. Correction tables behind them, in older files, are
skipped.
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

from codespec.native import Planner
from codespec.system.files import write_atomically
from codespec.system.folders import private_opener
from codespec.types import Source

State = npt.NDArray[np.float32]

_MAGIC = b"CSACC002"
# Numbers of each source behind all weights, which corrected them once.
_N_CORRECTION = 60
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
class PlannerWeights:
    """Learned weights of a planner: numbers, from which no text can be read.

    shared:  (Planner.n_shared,) float32 weights that all sources share.
    weights: source's name -> (Planner.n_by_source,) float32.
    """

    shared: State
    weights: Mapping[str, State]

    def state(self, sources: Sequence[str]) -> State:
        """(n_weights,) float32 for `Planner.load`, of a planner for `sources`, names in the order
        of their numbers."""
        unknown = np.zeros(Planner.n_by_source, np.float32)
        return np.concatenate([self.shared, *(self.weights.get(name, unknown) for name in sources)])


def weights_of(state: State, sources: Sequence[str]) -> PlannerWeights | None:
    """Weights from a `Planner.state` of a planner for `sources`; None where its size does not fit
    them."""
    if len(state) != _n_weights(sources):
        return None
    weights = state[Planner.n_shared :].reshape(len(sources), Planner.n_by_source)
    return PlannerWeights(state[: Planner.n_shared], dict(zip(sources, weights, strict=True)))


def source_names() -> list[str]:
    """Names of all registered sources, in the order of their numbers."""
    return [source.label for source in Source.all()]


def write_weights(path: Path, learned: PlannerWeights, kind: str = "<f4") -> None:
    """Write the file, replacing an older one. kind: number type, "<f4" or "<f2". Raises:
    OSError."""
    header = json.dumps({"sources": list(learned.weights), "type": kind}).encode()
    numbers = np.concatenate([learned.shared, *learned.weights.values()]).astype(kind)
    body = len(header).to_bytes(4, "little") + header + numbers.tobytes()
    write_atomically(path, _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)


def read_weights(path: Path) -> PlannerWeights | None:
    """Read a file of `write_weights`, or of the format before; None where it is missing, damaged or
    of another format."""
    try:
        with open(path, "rb", opener=private_opener) as file:
            return parse_weights(file.read())
    except OSError:
        return None


def parse_weights(stored: bytes) -> PlannerWeights | None:
    """Parse the bytes of a file, see `read_weights`."""
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
    state, n_weights = np.frombuffer(numbers, kind).astype(np.float32), _n_weights(names)
    if len(state) == n_weights + len(names) * _N_CORRECTION:
        state = state[:n_weights]
    return weights_of(state, names)


def _converted(body: bytes) -> PlannerWeights | None:
    """Weights from a file of the format before, without its magic and checksum."""
    n_sources = len(_OLD_SOURCES)
    sizes = [t if isinstance(t, int) else n_sources * t[0] * t[1] for t in _OLD_TABLES]
    if len(body) != 4 * (sum(sizes) + n_sources * _N_CORRECTION):
        return None
    numbers = np.frombuffer(body, "<f4").astype(np.float32)
    tables = np.split(numbers, list(itertools.accumulate(sizes)))[:-1]
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
    return PlannerWeights(np.concatenate(shared), dict(zip(_OLD_SOURCES, weights, strict=True)))


def _n_weights(sources: Sequence[str]) -> int:
    return Planner.n_shared + len(sources) * Planner.n_by_source
