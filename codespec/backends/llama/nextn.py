"""llama.cpp's support for MTP heads ("nextn" in GGUF): detecting them in files, and the hidden
states that they draft from.

Two of the functions are C++ and in no installed header, so they are looked up by their mangled
names on Linux and macOS. Where one is missing, no model counts as having an MTP head.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from codespec.backends.llama.kernels import llama_cpp
from codespec.backends.llama.kernels_check import function
from codespec.models.split import files_of

_backend: Any = llama_cpp.llama_cpp
_theirs: Any = _backend._lib
_hand_out: Any = getattr(_theirs, "_Z26llama_set_embeddings_nextnP13llama_contextbb", None)
_handed_out: Any = getattr(_theirs, "_Z26llama_get_embeddings_nextnP13llama_context", None)
if _hand_out is not None and _handed_out is not None:
    _hand_out.restype, _hand_out.argtypes = None, [ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool]
    _handed_out.restype, _handed_out.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

FAMILIES = {"qwen35", "qwen35moe", "qwen3next", "glm4moe"}
"""Architectures whose MTP head is one layer with keys and values as its only state. Each is tested:
llama.cpp aborts the process for an unsupported one."""

OF_WANTED_ONLY = {"qwen3next"}
"""Architectures whose MTP head computes hidden states only where logits are wanted."""

_LAYER = b".nextn.eh_proj.weight"


def has_mtp_layer(path: Path) -> bool:
    """True if the model of a GGUF file, or of a split one, has an MTP head that can draft."""
    if _hand_out is None or _handed_out is None:
        return False
    first, *others = files_of(path)
    return _is_of_family(first) and any(_has_layer(part) for part in (first, *others))


class _File:
    """Metadata and tensor names of a GGUF file, without its weights."""

    def __init__(self, path: Path) -> None:
        class _Params(ctypes.Structure):
            _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))

        self._at = function(
            _theirs, "gguf_init_from_file", ctypes.c_void_p, ctypes.c_char_p, _Params
        )(os.fsencode(path), _Params(True, None))

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        if self._at:
            function(_theirs, "gguf_free", None, ctypes.c_void_p)(self._at)

    def value(self, name: str, result: Any, key: bytes, kind: int) -> Any:
        """Value of a metadata key by the gguf function `name`; None where it has none of type
        `kind`."""
        at, number = ctypes.c_void_p, ctypes.c_int64
        if not self._at:
            return None
        i = function(_theirs, "gguf_find_key", number, at, ctypes.c_char_p)(self._at, key)
        kind_of = function(_theirs, "gguf_get_kv_type", ctypes.c_int, at, number)
        if i < 0 or kind_of(self._at, i) != kind:
            return None
        return function(_theirs, name, result, at, number)(self._at, i)

    def has_tensor(self, end: bytes) -> bool:
        at, number = ctypes.c_void_p, ctypes.c_int64
        if not self._at:
            return False
        name_of = function(_theirs, "gguf_get_tensor_name", ctypes.c_char_p, at, number)
        n = function(_theirs, "gguf_get_n_tensors", number, at)(self._at)
        return any(name_of(self._at, i).endswith(end) for i in range(n))


_TYPE_U32, _TYPE_STRING = 4, 8  # GGUF_TYPE_UINT32, GGUF_TYPE_STRING


def _is_of_family(path: Path) -> bool:
    with _File(path) as file:
        text = "gguf_get_val_str", ctypes.c_char_p
        kind = file.value(*text, b"general.architecture", _TYPE_STRING) or b""
        key = kind + b".nextn_predict_layers"
        n_layers = file.value("gguf_get_val_u32", ctypes.c_uint32, key, _TYPE_U32)
        return kind.decode("utf-8", "replace") in FAMILIES and n_layers == 1


def _has_layer(path: Path) -> bool:
    with _File(path) as file:
        return file.has_tensor(_LAYER)


def enable_hidden_states(context: Any, *, wanted_only: bool) -> None:
    """Let a context output hidden states from the next pass on, of all tokens, or of those alone
    whose logits are wanted."""
    _hand_out(context, True, wanted_only)


def hidden_states_at(context: Any) -> int:
    """Address of the last pass's hidden states, valid until the next; 0: none. Waits for a GPU."""
    return int(_handed_out(context) or 0)
