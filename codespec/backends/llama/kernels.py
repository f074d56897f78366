"""llama_cpp, with our own products of matrices in its CPU backend (native/kernels).

The backend asks a function, `llamafile_sgemm`, before it multiplies matrices itself. The dynamic
linker binds that name to the first library that has it: ours, if that is loaded before. Hence
llama_cpp is imported here, after it, and nowhere else.

Linux on x86-64 alone; with CODESPEC_KERNELS=off, and wherever something is not as expected,
llama.cpp multiplies as ever. Any of NAMES in that variable chooses other instructions than the
best.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import numpy as np

from codespec.native import KERNELS

_Q8_0 = np.dtype([("scale", np.float16), ("numbers", np.int8, 32)])
_TYPE_F32, _TYPE_Q8_0 = 0, 8


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
    library.codespec_kernels_use.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    library.codespec_kernels_count.restype = ctypes.c_int64
    library.llamafile_sgemm.restype = ctypes.c_bool
    library.llamafile_sgemm.argtypes = [
        *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64),
        *(ctypes.c_void_p, ctypes.c_int64) * 3,
        *(ctypes.c_int,) * 3,
    ]
    return library


def _is_right(library: Any) -> bool:
    """Whether a small product comes out as numpy has it."""
    rng = np.random.default_rng(0)
    rows, columns, n_blocks = 37, 19, 3

    def blocks(n: int) -> Any:
        out = np.zeros((n, n_blocks), _Q8_0)
        out["scale"] = rng.uniform(0.01, 0.02, out.shape)
        out["numbers"] = rng.integers(-128, 128, out["numbers"].shape)
        return out

    def plain(blocks: Any) -> Any:
        numbers = blocks["numbers"].astype(np.float64) * blocks["scale"][..., None]
        return numbers.reshape(len(blocks), -1)

    weights, states = blocks(rows), blocks(columns)
    out = np.zeros((columns, rows), np.float32)
    params = (ctypes.c_int * 2)(0, 1)
    strides_and_data = (weights.ctypes.data, n_blocks, states.ctypes.data, n_blocks)
    is_done = library.llamafile_sgemm(
        *(params, rows, columns, n_blocks),
        *(*strides_and_data, out.ctypes.data, rows),
        *(_TYPE_Q8_0, _TYPE_Q8_0, _TYPE_F32),
    )
    return is_done and np.allclose(out, plain(states) @ plain(weights).T, rtol=1e-4, atol=1e-2)


_library = _load()

import llama_cpp  # noqa: E402  # after the library


def _names() -> list[str]:
    """The instruction sets that this processor and they have, the best first."""
    out: list[str] = []
    while not isinstance(_library, str) and (name := _library.codespec_kernels_name(len(out))):
        out.append(name.decode())
    return out


def _connect() -> tuple[int, str, str]:
    """llama.cpp's own function, the instruction set, and why there is none."""
    if isinstance(_library, str):
        return 0, "", _library
    try:
        # Looked up in llama.cpp's library and those it needs, so it is not ours.
        backend: Any = llama_cpp.llama_cpp
        original = ctypes.cast(backend._lib.llamafile_sgemm, ctypes.c_void_p).value
    except AttributeError:
        return 0, "", "llama.cpp was built without llamafile_sgemm"
    name = os.environ.get("CODESPEC_KERNELS") or next(iter(NAMES), "")
    _library.codespec_kernels_use(name.encode(), original)
    if name not in NAMES:
        return 0, "", f"this processor has no {name or 'instructions for them'}"
    if not _is_right(_library):
        _library.codespec_kernels_use(b"", original)
        return 0, "", "they multiply wrongly here"
    return original or 0, name, ""


NAMES = _names()
"""The instruction sets that can be used here, the best first."""

_ORIGINAL, NAME, WHY_NOT = _connect()
"""The instruction set that they use, as NAME; where llama.cpp multiplies "", and WHY_NOT."""


def use(wanted: bool, name: str = NAME) -> None:
    """Multiply with them (one of NAMES) from now on, or as llama.cpp does; to compare."""
    if NAME:
        _library.codespec_kernels_use(name.encode() if wanted else b"", _ORIGINAL)


def n_products() -> int:
    """Products made by them so far."""
    return int(_library.codespec_kernels_count()) if NAME else 0


__all__ = ["NAME", "NAMES", "WHY_NOT", "llama_cpp", "n_products", "use"]
