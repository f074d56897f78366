"""Catalogue of well-known open code models, and the one that suits a machine.

Licences are those of the weights as their makers state them; sizes are of the files named. A file
is downloaded only when somebody asks for it by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from codespec.models.hardware import Hardware

GB = 1_000_000_000
GIB = 1 << 30
"""Bytes of a GiB. Sizes of files are given in GB, memory is sold in GiB."""
# Memory beside the weights: KV cache of the default window, compute buffers, the process.
_OVERHEAD_BYTES = 600_000_000


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model that fills in the middle (FIM), or one for next edits. n_params_b: parameters in
    billions. file_gb: size of the file in GB. repo, file: where a model hub has it; "" if no
    download is known."""

    name: str
    n_params_b: float
    file_gb: float
    licence: str
    is_open: bool  # a licence that allows commercial use without further terms
    repo: str = ""
    file: str = ""
    for_edits: bool = False  # a next-edit model, for `edits.model`

    @property
    def memory_bytes(self) -> int:
        """Memory that running it takes, about."""
        return memory_of(self.file_gb * GB)


def memory_of(file_bytes: float) -> int:
    """Bytes of memory that a model takes, about."""
    return int(file_bytes * 1.05) + _OVERHEAD_BYTES


_APACHE = "Apache-2.0"
ENTRIES = (
    CatalogueEntry(
        "qwen2.5-coder-0.5b",
        0.49,
        0.53,
        _APACHE,
        True,
        "ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF",
        "qwen2.5-coder-0.5b-q8_0.gguf",
    ),
    CatalogueEntry(
        "qwen2.5-coder-1.5b",
        1.54,
        1.65,
        _APACHE,
        True,
        "ggml-org/Qwen2.5-Coder-1.5B-Q8_0-GGUF",
        "qwen2.5-coder-1.5b-q8_0.gguf",
    ),
    CatalogueEntry(
        "qwen2.5-coder-3b",
        3.09,
        3.29,
        "Qwen Research (not for commercial use)",
        False,
        "ggml-org/Qwen2.5-Coder-3B-Q8_0-GGUF",
        "qwen2.5-coder-3b-q8_0.gguf",
    ),
    CatalogueEntry(
        "qwen2.5-coder-7b-q4",
        7.62,
        4.68,
        _APACHE,
        True,
        "QuantFactory/Qwen2.5-Coder-7B-GGUF",
        "Qwen2.5-Coder-7B.Q4_K_M.gguf",
    ),
    CatalogueEntry(
        "qwen2.5-coder-7b",
        7.62,
        8.1,
        _APACHE,
        True,
        "ggml-org/Qwen2.5-Coder-7B-Q8_0-GGUF",
        "qwen2.5-coder-7b-q8_0.gguf",
    ),
    CatalogueEntry(
        "qwen2.5-coder-14b",
        14.8,
        15.7,
        _APACHE,
        True,
        "ggml-org/Qwen2.5-Coder-14B-Q8_0-GGUF",
        "qwen2.5-coder-14b-q8_0.gguf",
    ),
    # A mixture of experts: a token goes through 3.3 of its 30.5 B parameters.
    CatalogueEntry(
        "qwen3-coder-30b-a3b",
        30.5,
        32.5,
        _APACHE,
        True,
        "ggml-org/Qwen3-Coder-30B-A3B-Instruct-Q8_0-GGUF",
        "qwen3-coder-30b-a3b-instruct-q8_0.gguf",
    ),
    # Known, and left to their users to fetch: a short context, terms, or no file that is known.
    CatalogueEntry("mellum-4b", 4.02, 4.27, _APACHE, True),
    CatalogueEntry("granite-3b-code", 3.48, 3.7, _APACHE, True),
    CatalogueEntry("deepseek-coder-1.3b", 1.35, 1.43, "DeepSeek licence (use restrictions)", False),
    CatalogueEntry("codegemma-2b", 2.5, 2.67, "Gemma terms (use restrictions)", False),
    CatalogueEntry("starcoder2-3b", 3.03, 3.22, "BigCode OpenRAIL-M (use restrictions)", False),
    CatalogueEntry("codestral-22b", 22.2, 23.6, "MNPL (not for production)", False),
    # Next-edit models. Their files could not be fetched where this list was written, so that no sum
    # of theirs is stated here: as of the others, the model hub's is checked.
    CatalogueEntry(
        "sweep-next-edit-0.5b",
        0.49,
        0.53,
        _APACHE,
        True,
        "sweepai/sweep-next-edit-0.5B",
        "sweep-next-edit-0.5b.q8_0.gguf",
        for_edits=True,
    ),
    CatalogueEntry(
        "sweep-next-edit-1.5b",
        1.54,
        1.65,
        _APACHE,
        True,
        "sweepai/sweep-next-edit-1.5B",
        "sweep-next-edit-1.5b.q8_0.v2.gguf",
        for_edits=True,
    ),
    # Files of others than their makers.
    CatalogueEntry(
        "zeta-2.1-q4",
        8.25,
        5.07,
        _APACHE,
        True,
        "adilkairolla/zeta-2.1-GGUF",
        "zeta-2.1-Q4_K_M.gguf",
        for_edits=True,
    ),
    CatalogueEntry("zeta-2", 8.25, 5.07, _APACHE, True, for_edits=True),
)


@dataclass(frozen=True, slots=True)
class Tier:
    """A kind of machine. memory_bytes: how large a model, with its caches, serves it well. why: the
    reason, for people."""

    name: str
    memory_bytes: int
    why: str


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
    budget = min(_CPU.memory_bytes, hardware.memory_bytes // 2)
    if hardware.n_cores < 4:
        # Half a second for a line is the most that anybody waits for.
        budget = min(budget, int(1.4 * GB))
    return Tier(f"CPU, {hardware.n_cores} cores", budget, _CPU.why)


def recommended(tier: Tier) -> CatalogueEntry | None:
    """The largest model of an open licence that completes, fits and can be downloaded by name, in
    the largest file of it; None if only the bundled one fits."""
    fitting = [e for e in ENTRIES if e.is_open and e.file and e.memory_bytes <= tier.memory_bytes]
    fitting = [e for e in fitting if not e.for_edits]
    return max(fitting, key=lambda e: (e.n_params_b, e.file_gb), default=None)


def by_name(name: str) -> CatalogueEntry | None:
    """The entry of this name if it can be downloaded, else None."""
    return next((e for e in ENTRIES if e.name == name and e.file), None)


def names_without_download() -> list[str]:
    """Names of the entries that cannot be downloaded by name."""
    return [e.name for e in ENTRIES if not e.file]
