"""llama_cpp, with our own products of matrices and attention in its CPU backend (native/kernels).

The backend asks functions before it multiplies matrices itself: `llamafile_sgemm`,
`ggml_compute_forward_mul_mat_tiled` and, about experts, `ggml_compute_forward_mul_mat_id_tiled`. It
has attention made by another, `ggml_compute_forward_flash_attn_ext`. The dynamic linker binds those
names to the first library that has them: ours, if that is loaded before. Hence llama_cpp is
imported here, after it, and nowhere else.

Linux on x86-64 alone; with CODESPEC_KERNELS=off, and wherever something is not as expected,
llama.cpp multiplies as ever. Any of NAMES in that variable chooses other instructions than the
best.
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


def _load() -> Any:
    """The library, its names visible to what is loaded later, or the reason why not."""
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

# Read on loading: of an exception that nobody catches, a debugger would tell pages, source text
# that is passed on included.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

with openmp.short_waits():
    import llama_cpp  # after the library


def _names() -> list[str]:
    """The instruction sets that this processor and they have, the best first."""
    out: list[str] = []
    while not isinstance(_library, str) and (name := _library.codespec_kernels_name(len(out))):
        out.append(name.decode())
    return out


def _theirs() -> Any:
    """llama.cpp's library. What is looked up in it and those it needs is not ours."""
    backend: Any = llama_cpp.llama_cpp
    return backend._lib


def _connect() -> tuple[str, str]:
    """The instruction set, and why there is none."""
    if isinstance(_library, str):
        return "", _library
    try:
        return _connect_to(_theirs())
    except AttributeError as error:
        _library.codespec_kernels_use(b"")
        return "", f"llama.cpp was built in another way: {error}"


def _connect_to(theirs: Any) -> tuple[str, str]:
    """Raises: AttributeError where llama.cpp lacks a function."""
    names = "mul_mat_tiled", "mul_mat_id_tiled", "flash_attn_ext"
    names = ["llamafile_sgemm", *(f"ggml_compute_forward_{name}" for name in names)]
    functions = [getattr(theirs, name, None) for name in names]
    # First of all: from now on ours are called, and pass on what they do not take.
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
"""The instruction sets that can be used here, the best first."""

NAME, WHY_NOT = _connect()
"""The instruction set that they use, as NAME; where llama.cpp multiplies "", and WHY_NOT."""


def _are_right(check: Callable[[Any, Any], bool]) -> bool:
    try:
        return bool(NAME) and check(_library, _theirs())
    except AttributeError:
        return False  # llama.cpp lacks a function


_attends = _are_right(kernels_check.attends_right)
_routes = _are_right(kernels_check.routes_right)
_is_in_use = bool(NAME)


def use(wanted: bool, name: str = NAME) -> None:
    """Multiply with them (one of NAMES) from now on, or as llama.cpp does; to compare. Models
    loaded and contexts made later are such as is best for that."""
    global _is_in_use
    if NAME:
        _is_in_use = wanted
        _library.codespec_kernels_use(name.encode() if wanted else b"")


@contextlib.contextmanager
def left_out() -> Generator[None]:
    """Meanwhile all is as llama.cpp does it; to compare."""
    use(False)
    try:
        yield
    finally:
        use(True)


def in_use() -> list[str]:
    """What of theirs computes: the instruction set, and "attention", if that is theirs, too."""
    return [NAME, *["attention"] * _attends] if _is_in_use else []


MAX_COPIED = 32 << 20
"""Bytes of a model whose weights are kept twice: about what a processor's last cache holds. Where
they come from memory in each pass, one token takes up to an eighth longer in that order."""


class Share(NamedTuple):
    """What of a model's products they make."""

    needs_order: bool
    """Some only if llama.cpp leaves the weights as they are in the file: it copies some into an
    order of its own, and then asks nobody."""
    is_all: bool
    """All, so that a token's logits are the same to the bit in passes of any size, attention
    included. That holds for chains: the branch of a tree that is kept lies elsewhere in the KV
    cache than the same tokens would without it, and its sums are made in another order."""
    others: tuple[str, ...] = ()
    """ggml's names of the types of weights that llama.cpp multiplies, where some are theirs."""


NOTHING = Share(False, False)


def share_in(path: Path) -> Share:
    """Their share in the model of a GGUF file, or of all files of one that is split.

    Nothing where it has experts that they do not multiply: llama.cpp's own order is faster then.
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
    """Types of a file's matrices; None where it has experts and these are not ours, or is none."""

    class Params(ctypes.Structure):
        _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))

    at, number = ctypes.c_void_p, ctypes.c_int64
    file = function(theirs, "gguf_init_from_file", at, ctypes.c_char_p, Params)(
        os.fsencode(path), Params(True, None)
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
    """Whether llama.cpp was built to multiply with AMX, for which it copies all kinds of weights.

    Compilers leave out most of what it tells the processor about its tiles (GCC 12 does), and the
    process dies of the first product, by an illegal instruction:
    https://github.com/ggml-org/llama.cpp/pull/26954
    """
    # Where its parts are libraries of their own, it may not be found: so on Windows, where no
    # compiler makes such products unasked.
    asked = getattr(_theirs(), "ggml_cpu_has_amx_int8", None)
    return asked is not None and bool(asked())


class _Override(ctypes.Structure):
    """llama_model_tensor_buft_override: names of tensors as a regular expression, where they go."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


def overrides(n_bytes: int) -> ctypes.Array[_Override] | None:
    """Where llama.cpp is to keep the weights of a model of that size: a small one's also in the
    order that products take them in. None where it is to do as ever; else to be kept until the
    model is loaded."""
    if n_bytes > MAX_COPIED or not _is_in_use:
        return None
    buffer_type = _weights()
    return (_Override * 2)(_Override(b".", buffer_type), _Override()) if buffer_type else None


def _weights() -> int | None:
    """A type of buffer."""
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


def attend() -> bool:
    """Whether they make attention, if llama.cpp is asked for it as one operation. Its own of that
    kind is slower for a few tokens than products and a softmax apart, and differs by their number.
    """
    return "attention" in in_use()


def n_products() -> int:
    """Products made by them so far."""
    return int(_library.codespec_kernels_count()) if NAME else 0


def n_ordered() -> int:
    """Matrices that are kept in the order of products just now."""
    return int(_library.codespec_kernels_count_ordered()) if NAME else 0


def n_attentions() -> int:
    """The same of attention, a layer at a time."""
    return int(_library.codespec_kernels_count_attentions()) if NAME else 0


__all__ = [
    "MAX_COPIED",
    "NAME",
    "NAMES",
    "NOTHING",
    "WHY_NOT",
    "Share",
    "attend",
    "in_use",
    "left_out",
    "llama_cpp",
    "n_attentions",
    "n_ordered",
    "n_products",
    "overrides",
    "share_in",
    "use",
]
