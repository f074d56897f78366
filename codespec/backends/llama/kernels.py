"""llama_cpp, with our own products of matrices in its CPU backend (native/kernels).

The backend asks two functions, `ggml_compute_forward_mul_mat_tiled` and `llamafile_sgemm`, before
it multiplies matrices itself. The dynamic linker binds those names to the first library that has
them: ours, if that is loaded before. Hence llama_cpp is imported here, after it, and nowhere else.

Linux on x86-64 alone; with CODESPEC_KERNELS=off, and wherever something is not as expected,
llama.cpp multiplies as ever. Any of NAMES in that variable chooses other instructions than the
best.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codespec.backends.llama import openmp
from codespec.native import KERNELS

_Q8_0 = np.dtype([("scale", np.float16), ("numbers", np.int8, 32)])
_TYPE_F32, _TYPE_F16, _TYPE_Q8_0, _TYPE_Q6_K, _TYPE_Q8_K = 0, 1, 8, 14, 15
_K_QUANTS = {12: ("q4_K", 144), 13: ("q5_K", 176), _TYPE_Q6_K: ("q6_K", 210)}  # bytes of a block
_Q8_K_BYTES = 292
_TENSOR_BYTES = 256  # a ggml_tensor has more


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
    library.codespec_kernels_connect.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    library.codespec_kernels_use.argtypes = [ctypes.c_char_p]
    library.codespec_kernels_count.restype = ctypes.c_int64
    library.llamafile_sgemm.restype = ctypes.c_bool
    library.llamafile_sgemm.argtypes = [
        *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64),
        *(ctypes.c_void_p, ctypes.c_int64) * 3,
        *(ctypes.c_int,) * 3,
    ]
    return library


def _is_right(theirs: Any) -> bool:
    """Whether small products come out as by numpy and llama.cpp's own functions, `theirs`."""
    rng = np.random.default_rng(0)
    n_rows, n_columns, n_blocks = 37, 19, 3

    def blocks(n: int) -> Any:
        out = np.zeros((n, n_blocks), _Q8_0)
        out["scale"] = rng.uniform(0.01, 0.02, out.shape)
        out["numbers"] = rng.integers(-128, 128, out["numbers"].shape)
        return out

    def plain(blocks: Any) -> Any:
        numbers = blocks["numbers"].astype(np.float64) * blocks["scale"][..., None]
        return numbers.reshape(len(blocks), -1)

    def is_near(ours: Any, expected: Any) -> bool:
        return ours is not None and np.allclose(
            ours, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()
        )

    weights, states = blocks(n_rows), blocks(n_columns)
    expected = plain(states) @ plain(weights).T
    if not is_near(_product(weights, states, n_blocks, _TYPE_Q8_0, _TYPE_Q8_0), expected):
        return False
    halves, others = (rng.normal(size=(n, 41)).astype(np.float16) for n in (n_rows, n_columns))
    expected = others.astype(np.float64) @ halves.astype(np.float64).T
    if not is_near(_product(halves, others, 41, _TYPE_F16, _TYPE_F16), expected):
        return False
    n_rows, n_columns = 17, 3
    states = np.zeros((n_columns, n_blocks * _Q8_K_BYTES), np.uint8)
    theirs.ggml_cpu_init()
    for state in states:
        numbers = rng.normal(size=n_blocks * 256).astype(np.float32)
        theirs.quantize_row_q8_K(_address(numbers), _address(state), ctypes.c_int64(numbers.size))
    for kind, (name, n_bytes) in _K_QUANTS.items():
        weights = rng.integers(0, 64, (n_rows, n_blocks * n_bytes), np.uint8)  # no scale is NaN
        expected = np.zeros((n_columns, n_rows), np.float32)
        for i, j in np.ndindex(expected.shape):
            theirs[f"ggml_vec_dot_{name}_q8_K"](
                n_blocks * 256,
                *(_address(expected[i, j:]), ctypes.c_size_t(0)),
                *(_address(weights[j]), ctypes.c_size_t(0)),
                *(_address(states[i]), ctypes.c_size_t(0), 1),
            )
        if not is_near(_product(weights, states, n_blocks, kind, _TYPE_Q8_K), expected):
            return False
    return True


def _address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _product(weights: Any, states: Any, n_blocks: int, kind: int, state_kind: int) -> Any:
    """(columns, rows); None where they do not make it."""
    out = np.zeros((len(states), len(weights)), np.float32)
    is_done = _library.llamafile_sgemm(
        *((ctypes.c_int * 2)(0, 1), len(weights), len(states), n_blocks),
        *(weights.ctypes.data, n_blocks, states.ctypes.data, n_blocks),
        *(out.ctypes.data, len(weights), kind, state_kind, _TYPE_F32),
    )
    return out if is_done else None


def _place_of_weights(theirs: Any) -> int:
    """Where a product's tensor says which its weights are, in bytes; 0: not found."""

    class Params(ctypes.Structure):
        _fields_ = (
            ("n_bytes", ctypes.c_size_t),
            ("memory", ctypes.c_void_p),
            ("no_alloc", ctypes.c_bool),
        )

    at, number = ctypes.c_void_p, ctypes.c_int64
    tensor = _function(theirs, "ggml_new_tensor_2d", at, at, ctypes.c_int, number, number)
    context = _function(theirs, "ggml_init", at, Params)(Params(1 << 16, None, True))
    weights = tensor(context, _TYPE_Q6_K, 256, 16)
    states = tensor(context, _TYPE_F32, 256, 2)
    product = _function(theirs, "ggml_mul_mat", at, at, at, at)(context, weights, states)
    has_type_first = ctypes.c_int.from_address(weights).value == _TYPE_Q6_K
    place = ctypes.string_at(product, _TENSOR_BYTES).find(weights.to_bytes(8, sys.byteorder))
    _function(theirs, "ggml_free", None, at)(context)
    return max(place, 0) if has_type_first else 0


_library = _load()

with openmp.short_waits():
    import llama_cpp  # after the library


def _names() -> list[str]:
    """The instruction sets that this processor and they have, the best first."""
    out: list[str] = []
    while not isinstance(_library, str) and (name := _library.codespec_kernels_name(len(out))):
        out.append(name.decode())
    return out


def _function(theirs: Any, name: str, result: Any, *arguments: Any) -> Any:
    out = theirs[name]
    out.restype, out.argtypes = result, arguments
    return out


def _connect() -> tuple[str, str]:
    """The instruction set, and why there is none."""
    if isinstance(_library, str):
        return "", _library
    # Looked up in llama.cpp's library and those it needs, so its functions are not ours.
    backend: Any = llama_cpp.llama_cpp
    try:
        return _connect_to(backend._lib)
    except AttributeError as error:
        _library.codespec_kernels_use(b"")
        return "", f"llama.cpp was built in another way: {error}"


def _connect_to(theirs: Any) -> tuple[str, str]:
    """Raises: AttributeError where llama.cpp lacks a function."""
    tiled = getattr(theirs, "ggml_compute_forward_mul_mat_tiled", None)
    _library.codespec_kernels_connect(
        ctypes.cast(theirs.llamafile_sgemm, ctypes.c_void_p),
        ctypes.cast(tiled, ctypes.c_void_p) if tiled else None,
        _place_of_weights(theirs) if tiled else 0,
    )
    name = os.environ.get("CODESPEC_KERNELS") or next(iter(NAMES), "")
    _library.codespec_kernels_use(name.encode())
    if name not in NAMES:
        return "", f"this processor has no {name or 'instructions for them'}"
    if not _is_right(theirs):
        _library.codespec_kernels_use(b"")
        return "", "they multiply wrongly here"
    return name, ""


NAMES = _names()
"""The instruction sets that can be used here, the best first."""

NAME, WHY_NOT = _connect()
"""The instruction set that they use, as NAME; where llama.cpp multiplies "", and WHY_NOT."""


def use(wanted: bool, name: str = NAME) -> None:
    """Multiply with them (one of NAMES) from now on, or as llama.cpp does; to compare."""
    if NAME:
        _library.codespec_kernels_use(name.encode() if wanted else b"")


class Share(NamedTuple):
    """What of a model's products they make."""

    needs_order: bool
    """Some only if llama.cpp leaves the weights as they are in the file: it copies some into an
    order of its own, and then asks nobody."""
    is_all: bool
    """All, so that a token's logits are the same to the bit in passes of any size, attention
    included. That holds for chains: the branch of a tree that is kept lies elsewhere in the KV
    cache than the same tokens would without it, and its sums are made in another order."""


NOTHING = Share(False, False)


def share_in(path: Path) -> Share:
    """Their share in the model of a GGUF file.

    Nothing where it has experts: about their products nobody is asked, and llama.cpp's own order is
    faster.
    """
    backend: Any = llama_cpp.llama_cpp
    theirs = backend._lib
    # With AMX llama.cpp has another order, much faster in prompts.
    if not NAME or theirs.ggml_cpu_has_amx_int8():
        return NOTHING

    class Params(ctypes.Structure):
        _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))

    at, number = ctypes.c_void_p, ctypes.c_int64
    file = _function(theirs, "gguf_init_from_file", at, ctypes.c_char_p, Params)(
        os.fsencode(path), Params(True, None)
    )
    if not file:
        return NOTHING
    n_tensors = _function(theirs, "gguf_get_n_tensors", number, at)(file)
    kind_of = _function(theirs, "gguf_get_tensor_type", ctypes.c_int, at, number)
    sizes_of = _function(theirs, "gguf_get_tensor_ne", ctypes.POINTER(number), at, number)
    sizes = [sizes_of(file, i) for i in range(n_tensors)]
    kinds = {kind_of(file, i) for i in range(n_tensors) if sizes[i][1] > 1}
    has_experts = any(size[2] > 1 for size in sizes)
    _function(theirs, "gguf_free", None, at)(file)
    if has_experts:
        return NOTHING
    return Share(bool(kinds & {*_K_QUANTS}), kinds <= {_TYPE_F16, _TYPE_Q8_0, *_K_QUANTS})


def n_products() -> int:
    """Products made by them so far."""
    return int(_library.codespec_kernels_count()) if NAME else 0


__all__ = [
    "NAME",
    "NAMES",
    "NOTHING",
    "WHY_NOT",
    "Share",
    "llama_cpp",
    "n_products",
    "share_in",
    "use",
]
