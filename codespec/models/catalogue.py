"""The models of the catalogue that suit a machine."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.models.entries import ENTRIES, GB, CatalogueEntry
from codespec.models.hardware import Hardware

GIB = 1 << 30
"""Bytes of a GiB. Sizes of files are given in GB, memory is sold in GiB."""


@dataclass(frozen=True, slots=True)
class Tier:
    """A kind of machine. memory_bytes: how large a model, with its caches, serves it well. why: the
    reason, for people. room_bytes: what several models may take together."""

    name: str
    memory_bytes: int
    why: str
    room_bytes: int = 0

    @property
    def room(self) -> int:
        return max(self.room_bytes, self.memory_bytes)


def _gpu(n_bytes: int) -> Tier:
    return Tier(f"GPU {n_bytes / GIB:.0f} GiB", n_bytes * 9 // 10, "nine tenths of its memory")


def _apple(n_bytes: int) -> Tier:
    name = f"Apple silicon {n_bytes / GIB:.0f} GiB"
    return Tier(name, n_bytes * 2 // 3, "two thirds of memory, which it shares")


_CPU = Tier("CPU", int(2.6 * GB), "a pass reads the whole file, so size is time")
# Sizes of machines for the table: memory that a model may use there.
TIERS = (
    _CPU,
    *(_gpu(n * GIB) for n in (8, 16, 24, 48)),
    *(_apple(n * GIB) for n in (16, 32, 64)),
)


def tier_of(hardware: Hardware) -> Tier:
    """The machine found as a tier of its own."""
    if hardware.uses_gpu and hardware.gpu_bytes:
        return _gpu(hardware.gpu_bytes)
    if hardware.uses_gpu and hardware.is_apple_silicon:
        return _apple(hardware.memory_bytes)
    room = hardware.memory_bytes // 2
    budget = min(_CPU.memory_bytes, room)
    if hardware.n_cores < 4:
        # Half a second for a line is the most that anybody waits for.
        budget = min(budget, int(1.4 * GB))
    return Tier(f"CPU, {hardware.n_cores} cores", budget, _CPU.why, room)


def recommended(tier: Tier) -> CatalogueEntry | None:
    """The largest model of an open licence that fills in the middle, fits and can be downloaded by
    name, in the largest file of it; None if only the bundled one fits."""
    return _largest([e for e in ENTRIES if e.fills_in], tier.memory_bytes)


def recommended_for_edits(tier: Tier, completes: CatalogueEntry | None) -> CatalogueEntry | None:
    """The largest next-edit model that fits beside the model that completes; None if none does,
    and next edits come from lookups alone."""
    left = tier.room - (completes.memory_bytes if completes else 0)
    return _largest([e for e in ENTRIES if e.for_edits], min(left, tier.memory_bytes))


def _largest(entries: list[CatalogueEntry], n_bytes: int) -> CatalogueEntry | None:
    fitting = [e for e in entries if e.licence.is_open and e.file and e.memory_bytes <= n_bytes]
    return max(fitting, key=lambda e: (e.n_params_b, e.file_gb), default=None)


def by_name(name: str) -> CatalogueEntry | None:
    """The entry of this name if it can be downloaded, else None."""
    return next((e for e in ENTRIES if e.name == name and e.file), None)


def names_without_download() -> list[str]:
    """Names of the entries that cannot be downloaded by name."""
    return [e.name for e in ENTRIES if not e.file]
