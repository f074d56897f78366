"""Hooks our CPU kernels (native/kernels) for matrix products and attention into llama.cpp.

Before llama.cpp's CPU backend multiplies matrices itself, it calls `llamafile_sgemm`,
`ggml_compute_forward_mul_mat_tiled` and, for experts, `ggml_compute_forward_mul_mat_id_tiled`; for
attention it calls `ggml_compute_forward_flash_attn_ext`. The dynamic linker binds those names to
the first library that has them: ours, if that is loaded before. Hence llama_cpp is imported here,
after it, and nowhere else.

Linux on x86-64 alone; with CODESPEC_KERNELS=off, and wherever a check fails, llama.cpp computes as
ever. Any of NAMES in that variable chooses other instructions than the best.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

from codespec.backends.llama import kernels_check, openmp
from codespec.backends.llama.kernels_check import FLOATS, QUANTISED, TYPE_Q8_0, function
from codespec.models.split import files_of
from codespec.native import KERNELS
from codespec.system import llama_place


def _load() -> Any:
    """The kernels' library, its symbols visible to libraries loaded later; or the reason why
    not."""
    if os.environ.get("CODESPEC_KERNELS") == "off":
        return "switched off by CODESPEC_KERNELS"
    if "llama_cpp" in sys.modules:
        return "llama_cpp was imported before codespec"
    if not KERNELS.exists():
        return "they are for Linux on x86-64"
    try:
        library = ctypes.CDLL(str(KERNELS), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        return str(error)
    library.codespec_kernels_name.restype = ctypes.c_char_p
    library.codespec_kernels_name.argtypes = [ctypes.c_size_t]
    library.codespec_kernels_connect.argtypes = [ctypes.c_void_p] * 4
    library.codespec_kernels_use.argtypes = [ctypes.c_char_p]
    library.codespec_kernels_count.restype = ctypes.c_int64
    library.codespec_kernels_count_attentions.restype = ctypes.c_int64
    library.codespec_kernels_count_ordered.restype = ctypes.c_int64
    library.codespec_kernels_weights.restype = ctypes.c_void_p
    library.codespec_kernels_weights.argtypes = [ctypes.c_void_p] * 2
    library.llamafile_sgemm.restype = ctypes.c_bool
    library.llamafile_sgemm.argtypes = [
        *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64),
        *(ctypes.c_void_p, ctypes.c_int64) * 3,
        *(ctypes.c_int,) * 3,
    ]
    return library


_library = _load()

# Read on loading: else a debugger prints pages on an uncaught exception, source text in arguments
# included.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

llama_place.add_to_path()
with openmp.short_waits():
    import llama_cpp  # after the library


def _names() -> list[str]:
    """The kernels' instruction sets that this processor has, the best first."""
    out: list[str] = []
    while not isinstance(_library, str) and (name := _library.codespec_kernels_name(len(out))):
        out.append(name.decode())
    return out


def _theirs() -> Any:
    """llama.cpp's library. Symbols looked up in it are llama.cpp's, never ours."""
    backend: Any = llama_cpp.llama_cpp
    return backend._lib


def _connect() -> tuple[str, str]:
    """Hook the kernels in. Returns: (instruction set, ""), or ("", the reason why not)."""
    if isinstance(_library, str):
        return "", _library
    try:
        return _connect_to(_theirs())
    except AttributeError as error:
        _library.codespec_kernels_use(b"")
        return "", f"llama.cpp was built in another way: {error}"


def _connect_to(theirs: Any) -> tuple[str, str]:
    """See `_connect`. Raises: AttributeError where llama.cpp lacks a function."""
    names = "mul_mat_tiled", "mul_mat_id_tiled", "flash_attn_ext"
    names = ["llamafile_sgemm", *(f"ggml_compute_forward_{name}" for name in names)]
    functions = [getattr(theirs, name, None) for name in names]
    # Before any check: ours are called from now on, and pass on calls that they do not take.
    _library.codespec_kernels_connect(
        *(function and ctypes.cast(function, ctypes.c_void_p) for function in functions)
    )
    if functions[0] is None:
        return "", "llama.cpp was built in another way: without llamafile_sgemm"
    if not kernels_check.knows_tensors(theirs):
        return "", "llama.cpp is another than they are made for"
    name = os.environ.get("CODESPEC_KERNELS") or next(iter(NAMES), "")
    _library.codespec_kernels_use(name.encode())
    if name not in NAMES:
        return "", f"this processor has no {name or 'instructions for them'}"
    if not kernels_check.multiplies_right(_library, theirs):
        _library.codespec_kernels_use(b"")
        return "", "they multiply wrongly here"
    return name, ""


NAMES = _names()
"""The kernels' instruction sets that can be used here, the best first."""

NAME, WHY_NOT = _connect()
"""Instruction set of the kernels in use; "" where llama.cpp computes, for the reason WHY_NOT."""


def _are_right(check: Callable[[Any, Any], bool]) -> bool:
    try:
        return bool(NAME) and check(_library, _theirs())
    except AttributeError:
        return False  # llama.cpp lacks a function


_attends = _are_right(kernels_check.attends_right)
_routes = _are_right(kernels_check.routes_right)
_is_in_use = bool(NAME)


def use(wanted: bool, name: str = NAME) -> None:
    """Switch the kernels on or off, for comparisons; models and contexts made later fit the choice.

    name: instruction set, one of NAMES.
    """
    global _is_in_use
    if NAME:
        _is_in_use = wanted
        _library.codespec_kernels_use(name.encode() if wanted else b"")


@contextlib.contextmanager
def switched_off() -> Generator[None]:
    """Switch the kernels off for a while, for comparisons."""
    use(False)
    try:
        yield
    finally:
        use(True)


def in_use() -> list[str]:
    """Parts of the kernels in use: the instruction set, and "attention" if they compute it; [] for
    none."""
    return [NAME, *["attention"] * _attends] if _is_in_use else []


MAX_COPIED = 32 << 20
"""Largest model, in bytes, whose weights are also kept in the order of products: about the size of
a last-level cache. Weights from memory take a pass over one token up to an eighth longer in that
order."""


class Share(NamedTuple):
    """Share of a model's matrix products that the kernels compute."""

    needs_order: bool
    """True if llama.cpp must leave weights as they are in the file: it repacks some types into its
    own order, and then calls none of the hooks."""
    is_all: bool
    """True if the kernels compute all products, so that a token's logits are the same to the bit in
    passes of any width, attention included. That holds for chains: a tree's accepted branch lies
    elsewhere in the KV cache than the same tokens would without it, and is summed in another order.
    """
    others: tuple[str, ...] = ()
    """ggml's names of the weight types whose products llama.cpp computes."""


NOTHING = Share(False, False)


def share_in(path: Path) -> Share:
    """The kernels' share in the model of a GGUF file, or of all files of a split one.

    NOTHING for a mixture of experts that they cannot multiply: llama.cpp's own order is faster
    then.
    """
    theirs = _theirs()
    if not _is_in_use:
        return NOTHING
    kinds: set[int] = set()
    for part in files_of(path):
        found = _kinds_in(theirs, part)
        if found is None:
            return NOTHING
        kinds |= found
    others = kinds - {*FLOATS, TYPE_Q8_0, *QUANTISED}
    name_of = function(theirs, "ggml_type_name", ctypes.c_char_p, ctypes.c_int)
    names = sorted(name_of(kind).decode() for kind in others)
    return Share(bool(kinds & {*QUANTISED}), not others, (*names,))


def _kinds_in(theirs: Any, path: Path) -> set[int] | None:
    """Types of a file's matrices; None for no GGUF file, or for experts that are not ours."""

    class _Params(ctypes.Structure):
        _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))

    at, number = ctypes.c_void_p, ctypes.c_int64
    file = function(theirs, "gguf_init_from_file", at, ctypes.c_char_p, _Params)(
        os.fsencode(path), _Params(True, None)
    )
    if not file:
        return None
    n_tensors = function(theirs, "gguf_get_n_tensors", number, at)(file)
    kind_of = function(theirs, "gguf_get_tensor_type", ctypes.c_int, at, number)
    sizes_of = function(theirs, "gguf_get_tensor_ne", ctypes.POINTER(number), at, number)
    sizes = [sizes_of(file, i) for i in range(n_tensors)]
    kinds = {kind_of(file, i) for i in range(n_tensors) if sizes[i][1] > 1}
    has_many = any(size[2] > 1 for size in sizes)  # experts
    function(theirs, "gguf_free", None, at)(file)
    return None if has_many and not _routes else kinds


def has_amx() -> bool:
    """True if llama.cpp was built to multiply with AMX, for which it repacks all types of weights.

    Compilers (GCC 12) drop most of its tile configuration, so that the process ends by an illegal
    instruction at the first product:
    https://github.com/ggml-org/llama.cpp/pull/26954
    """
    # Where its parts are libraries of their own, it may not be found: so on Windows, where no
    # compiler makes such products unasked.
    asked = getattr(_theirs(), "ggml_cpu_has_amx_int8", None)
    return asked is not None and bool(asked())


class _Override(ctypes.Structure):
    """llama_model_tensor_buft_override: tensor names as a regular expression, and their buffer
    type."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


def overrides(n_bytes: int) -> ctypes.Array[_Override] | None:
    """Buffer types for the weights of a model of `n_bytes`: a small model's are also kept in the
    order of products. None for llama.cpp's defaults. The array must live until the model is
    loaded."""
    if n_bytes > MAX_COPIED or not _is_in_use:
        return None
    buffer_type = _weights()
    return (_Override * 2)(_Override(b".", buffer_type), _Override()) if buffer_type else None


def _weights() -> int | None:
    """The kernels' buffer type; None where it cannot be used."""
    theirs = _theirs()
    try:
        buffer_type = _library.codespec_kernels_weights(
            function(theirs, "ggml_backend_cpu_buffer_type", ctypes.c_void_p)(),
            ctypes.cast(theirs.ggml_nbytes, ctypes.c_void_p),
        )
        is_right = buffer_type and kernels_check.orders_right(_library, theirs, buffer_type)
    except AttributeError:
        return None  # llama.cpp lacks a function
    return buffer_type if is_right else None


def computes_attention() -> bool:
    """True if the kernels compute flash attention. llama.cpp's own is slower for a few tokens than
    separate products and softmax, and its results depend on the number of tokens."""
    return "attention" in in_use()


def n_products() -> int:
    """Number of matrix products computed by the kernels so far."""
    return int(_library.codespec_kernels_count()) if NAME else 0


def n_ordered() -> int:
    """Number of matrices kept in the order of products at present."""
    return int(_library.codespec_kernels_count_ordered()) if NAME else 0


def n_attentions() -> int:
    """Number of attention layers computed by the kernels so far."""
    return int(_library.codespec_kernels_count_attentions()) if NAME else 0


__all__ = [
    "MAX_COPIED",
    "NAME",
    "NAMES",
    "NOTHING",
    "WHY_NOT",
    "Share",
    "computes_attention",
    "in_use",
    "llama_cpp",
    "n_attentions",
    "n_ordered",
    "n_products",
    "overrides",
    "share_in",
    "switched_off",
    "use",
]
