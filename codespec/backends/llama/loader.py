"""GGUF files loaded with llama.cpp: metadata as `ModelInfo`, errors as messages for people."""

from __future__ import annotations

import ctypes
import faulthandler
import hashlib
import math
import os
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from codespec.backends.base import KvType, Model
from codespec.backends.llama import kernels
from codespec.backends.llama.kernels import llama_cpp
from codespec.context.families import ends_in, family_in
from codespec.errors import ModelError, without_controls
from codespec.models.split import size_of
from codespec.native import Encoder, LlamaContext, accepts
from codespec.types import FileMarkers, FimOrder, FimTokens, ModelInfo

# llama_cpp is ctypes and has no useful types; the Any stays inside this package.
lib: Any = llama_cpp


# With addresses as integers: a pointer object costs more than the call.
get_logits: Any = lib.llama_cpp._lib["llama_get_logits"]
get_logits.restype = ctypes.c_void_p
get_logits.argtypes = [ctypes.c_void_p]


def _address(thing: Any) -> int:
    return ctypes.cast(thing, ctypes.c_void_p).value or 0


def context_calls(context: Any, memory: Any, batch: Any, n_vocab: int, n_ctx: int) -> LlamaContext:
    """llama.cpp's functions for a context, by address, for native code. All arguments must outlive
    it."""
    functions = lib.llama_cpp._lib
    return LlamaContext(
        _address(functions["llama_decode"]),
        _address(functions["llama_get_logits"]),
        _address(functions["llama_memory_seq_rm"]),
        _address(context),
        _address(memory),
        ctypes.addressof(batch),
        n_vocab,
        n_ctx,
    )


def encoder(vocabulary: Any, lead: bytes = b"", n_lead: int = 0) -> Encoder:
    """Native tokenizer of a vocabulary, which must outlive it; arguments as of `native.Encoder`."""
    function = _address(lib.llama_cpp._lib["llama_tokenize"])
    return Encoder(function, _address(vocabulary), lead, n_lead)


_ACCEPT = _address(lib.llama_cpp._lib["llama_sampler_accept"])


def sampler_accepts(sampler: Any, token: int) -> bool:
    """Let a sampler accept a token. False where that fails; the sampler must be reset then."""
    return accepts(_ACCEPT, _address(sampler), token)


_FAULTS = 3, 4  # GGML_LOG_LEVEL_WARN, GGML_LOG_LEVEL_ERROR
# std::bad_alloc; ENOMEM of mmap and mlock, as all C libraries have it; ggml's words for the rest.
_WANT_OF_MEMORY = (
    "bad_alloc",
    "cannot allocate memory",
    "out of memory",
    "insufficient memory",
    "failed to allocate",
    "unable to allocate",
    "mem_buffer != null",  # ggml asserts the result of malloc
)
_last_lines: deque[str] = deque(maxlen=30)


def _line(text: bytes) -> str:
    return without_controls(text.decode("utf-8", "replace"))


def _is_want_of_memory(line: str) -> bool:
    return any(words in line.lower() for words in _WANT_OF_MEMORY)


def _on_log(level: int, text: bytes, _user: object) -> None:
    line = _line(text.strip())
    # Other levels are many lines, some with the same words.
    if line and level in _FAULTS:
        _last_lines.append(line)


def _on_abort(text: bytes) -> None:
    """Callback of a failed assertion, which ends the process: prints its reason and the next step,
    one line each, in place of a debugger's pages."""
    why = _line(text.strip()).rpartition("/")[2]
    cause, step = "the model file may be damaged", "Get the file again, or choose another model."
    if _is_want_of_memory(why):
        cause, step = (
            "there is too little memory",
            "Close other programs, or choose a smaller model.",
        )
    os.write(2, f"error: llama.cpp gave up, {cause}: {why}\n".encode())
    if not faulthandler.is_enabled():  # else its traceback is wanted
        os.write(2, f"  {step}\n".encode())
        os._exit(1)


# llama.cpp keeps the pointers: a collected callback would crash the process.
_log_callback = lib.llama_log_callback(_on_log)
_abort_callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_on_abort)
lib.llama_log_set(_log_callback, None)
lib.llama_cpp._lib["ggml_set_abort_callback"](_abort_callback)
lib.llama_backend_init()


def build() -> str:
    """Version of llama.cpp and the kernels in use: cost curves are stored apart by it."""
    return "+".join([llama_cpp.__version__, *kernels.in_use()])


# Architectures whose attention differs without a key in their files: scores fall with the distance
# (ALiBi), are capped, or attention sinks take part of it.
_BIASED, _CAPPED = {"baichuan", "bloom", "refact"}, {"gemma2"}
_WITH_SINKS = {"deepseek4", "gpt-oss", "granite_swa", "hy_v4", "mimo2"}
_ODD = _BIASED | _CAPPED | _WITH_SINKS

_BYTES_OF_32: dict[KvType, int] = {"f16": 64, "q8_0": 34}
"""Bytes of 32 numbers, which share a scale in q8_0."""

# Architectures with learned position embeddings: llama.cpp aborts beyond the trained context.
_COUNTING = {"gpt2", "starcoder"}


class LoadedModel(Model):
    """A GGUF file in memory: weights, vocabulary and metadata."""

    def __init__(
        self, handle: Any, path: Path, backend: str, share: kernels.Share = kernels.NOTHING
    ) -> None:
        self.handle = handle
        self.vocab = lib.llama_model_get_vocab(handle)
        self.n_vocab = int(lib.llama_vocab_n_tokens(self.vocab))
        self.path = path
        self.backend = backend
        self.is_exact = share.is_all
        """True if a token's logits are the same to the bit in passes of any width over chains."""
        self.has_mtp_head = False
        """True if the model's MTP head was loaded, see `mtp`."""
        self._info: ModelInfo | None = None

    def metadata(self, key: str) -> str:
        buffer = ctypes.create_string_buffer(512)
        n = lib.llama_model_meta_val_str(self.handle, key.encode(), buffer, len(buffer))
        return _line(buffer.value) if n >= 0 else ""

    def window(self, n: int) -> int:
        counts = self.metadata("general.architecture") in _COUNTING
        return min(n, self.info.n_ctx or n) if counts else n

    def has_plain_attention(self) -> bool:
        """True if our kernels can compute the model's attention: keys as long as values, a multiple
        of 16 numbers, no soft-capped scores, no ALiBi, no attention sinks."""
        kind = self.metadata("general.architecture")

        def number(key: str, otherwise: float = 0.0) -> float:
            try:
                return float(self.metadata(f"{kind}.{key}") or otherwise)
            except ValueError:
                return math.nan  # a list, one value a layer: fails every test below

        n_heads = int(lib.llama_model_n_head(self.handle))
        head = int(lib.llama_model_n_embd(self.handle)) / n_heads if n_heads > 0 else 0.0
        length = number("attention.key_length", head)
        return (
            kind not in _ODD
            and length > 0
            and length % 16 == 0
            and number("attention.value_length", head) == length
            and not number("attn_logit_softcapping")
            and not number("attention.max_alibi_bias")
        )

    def kv_bytes_a_token(self, kv_type: KvType = "f16") -> int:
        kind = self.metadata("general.architecture")

        def number(key: str) -> int:
            text = self.metadata(f"{kind}.{key}")
            return int(text) if text.isdigit() else 0

        n_heads = number("attention.head_count")
        n_kv_heads = number("attention.head_count_kv") or n_heads
        width = number("embedding_length") // max(n_heads, 1)
        key, value = (number(f"attention.{k}_length") or width for k in ("key", "value"))
        return number("block_count") * n_kv_heads * (key + value) * _BYTES_OF_32[kv_type] // 32

    @property
    def description(self) -> str:
        buffer = ctypes.create_string_buffer(128)
        lib.llama_model_desc(self.handle, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    @property
    def info(self) -> ModelInfo:
        if self._info is None:
            self._info = self._read_info()
        return self._info

    def _read_info(self) -> ModelInfo:
        texts = self.token_texts()
        ids = {text: i for i, text in enumerate(texts)}
        fim = self._fim_tokens(ids)
        bos = int(lib.llama_vocab_bos(self.vocab))
        return ModelInfo(
            name=self.metadata("general.name") or self.path.stem,
            path=str(self.path),
            architecture=self.metadata("general.architecture"),
            n_vocab=self.n_vocab,
            # Any number may stand there, and what is too large for an int comes as less than 0.
            n_ctx=max(0, int(lib.llama_model_n_ctx_train(self.handle))),
            n_params=int(lib.llama_model_n_params(self.handle)),
            file_bytes=size_of(self.path),
            fim=fim,
            eog=self._ends(ids, fim),
            bos=bos if bos >= 0 and lib.llama_vocab_get_add_bos(self.vocab) else None,
            tokenizer_hash=self._tokenizer_hash(texts),
            backend=self.backend,
        )

    def _fim_tokens(self, ids: dict[str, int]) -> FimTokens | None:
        """FIM markers: those of the model's family where the file names it; else the file's own
        where llama.cpp finds them; else those of a family whose markers the vocabulary has.

        ids: spelling of each token -> id.
        """
        prefix, suffix, middle, repository, file = (
            int(f(self.vocab))
            for f in (
                lib.llama_vocab_fim_pre,
                lib.llama_vocab_fim_suf,
                lib.llama_vocab_fim_mid,
                lib.llama_vocab_fim_rep,
                lib.llama_vocab_fim_sep,
            )
        )
        files = FileMarkers(repository, file) if min(repository, file) >= 0 else None
        keys = ("general.architecture", "general.name", "general.basename", "tokenizer.ggml.pre")
        family = family_in(ids, " ".join([*map(self.metadata, keys), self.path.name]))
        if family is not None and (family.named or min(prefix, suffix, middle) < 0):
            fim = family.tokens(ids)
            return replace(fim, files=fim.files or files)
        if min(prefix, suffix, middle) < 0:
            return None
        if family is not None:
            files = family.tokens(ids).files or files
        order: FimOrder = "spm" if self.metadata("codespec.fim_order") == "spm" else "psm"
        return FimTokens(prefix, suffix, middle, order, files)

    def _ends(self, ids: dict[str, int], fim: FimTokens | None) -> frozenset[int]:
        """End-of-generation ids: llama.cpp's, and markers, which are never part of a suggestion."""
        ends = {t for t in range(self.n_vocab) if lib.llama_vocab_is_eog(self.vocab, t)}
        ends |= {t for t in ends_in(ids) if lib.llama_vocab_is_control(self.vocab, t)}
        if fim is not None:
            ends |= set(fim.markers)
        return frozenset(ends)

    def token_text(self, token: int) -> str:
        return lib.llama_vocab_get_text(self.vocab, token).decode("utf-8", "replace")

    def token_texts(self) -> list[str]:
        return [self.token_text(t) for t in range(self.n_vocab)]

    @property
    def special_tokens(self) -> dict[str, int]:
        kinds = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_USER_DEFINED
        return {
            text: token
            for token, text in enumerate(self.token_texts())
            if text and lib.llama_vocab_get_attr(self.vocab, token) & kinds
        }

    @property
    def chat_template(self) -> str:
        template: bytes | None = lib.llama_model_chat_template(self.handle, None)
        return (template or b"").decode("utf-8", "replace")

    def chat_prompt(self, messages: Sequence[tuple[str, str]]) -> str | None:
        template = lib.llama_model_chat_template(self.handle, None)
        if not template:
            return None
        encoded = [(role.encode(), text.encode("utf-8", "replace")) for role, text in messages]
        chat = (lib.llama_chat_message * len(encoded))(*encoded)
        n_bytes = lib.llama_chat_apply_template(template, chat, len(encoded), True, None, 0)
        if n_bytes < 0:  # it knows templates by their text, and not this one
            return None
        made = ctypes.create_string_buffer(n_bytes + 1)
        lib.llama_chat_apply_template(template, chat, len(encoded), True, made, n_bytes + 1)
        return made.raw[:n_bytes].decode("utf-8", "replace")

    def _tokenizer_hash(self, texts: Sequence[str]) -> str:
        digest = hashlib.blake2b(digest_size=10)
        for key in ("tokenizer.ggml.model", "tokenizer.ggml.pre"):
            digest.update(self.metadata(key).encode() + b"\0")
        for text in texts:
            digest.update(text.encode() + b"\0")
        return digest.hexdigest()

    def close(self) -> None:
        if self.handle:
            lib.llama_model_free(self.handle)
            self.handle = None


def not_generative(path: Path) -> ModelError:
    """The error of a model that cannot generate text."""
    return ModelError(
        f"{path}: this model writes no text; it is made for embeddings or something else",
        "Choose a code model: codespec models recommend.",
    )


def forget_causes() -> None:
    """Forget llama.cpp's log lines of earlier calls. To be called before a call that may fail."""
    _last_lines.clear()


def wants_memory() -> bool:
    """True if llama.cpp's last call ran out of memory, by its log lines since `forget_causes`."""
    return any(_is_want_of_memory(line) for line in _last_lines)


def last_cause() -> str:
    """Reason why llama.cpp's last call failed, from its log lines since `forget_causes`: ": ..." or
    ""."""
    words = (
        "error",
        "fail",
        "invalid",
        "unknown",
        "missing",
        "not within",
        "corrupt",
        "does not divide",
        "unsupported",
    )
    lines = [s for s in _last_lines if any(w in s.lower() for w in words)]
    return f": {lines[0]}" if lines else ""


_REGISTRIES = {"CUDA": "cuda", "MTL": "metal", "ROCm": "hip", "Vulkan": "vulkan", "SYCL": "sycl"}
"""Name that CODESPEC_BACKEND gives each registry of ggml's devices."""

_GPU_TYPES = 1, 2  # GGML_BACKEND_DEVICE_TYPE_GPU, ..._IGPU


def gpu_backend() -> str:
    """ "cpu", or the accelerator that models are computed on, by the name that CODESPEC_BACKEND
    gives it: "cuda", "metal", "hip", "vulkan", "sycl"; "gpu" for one that has no name there."""
    if os.environ.get("CODESPEC_BACKEND", "") == "cpu" or not lib.llama_supports_gpu_offload():
        return "cpu"
    return _of_first_gpu() or ("metal" if sys.platform == "darwin" else "cuda")


@cache
def _of_first_gpu() -> str:
    """The accelerator of ggml's first GPU; "" where its functions are not there to ask."""
    try:
        count, get, kind, registry, name = (_ggml(f"ggml_backend_{each}") for each in _QUESTIONS)
    except AttributeError:
        return ""
    for i in range(count()):
        device = get(i)
        if kind(device) in _GPU_TYPES:
            said = (name(registry(device)) or b"").decode("utf-8", "replace")
            return _REGISTRIES.get(said, "gpu")
    return ""


_QUESTIONS = "dev_count", "dev_get", "dev_type", "dev_backend_reg", "reg_name"


def _ggml(name: str) -> Any:
    """A function of ggml that takes at most an address. Raises: AttributeError."""
    function = getattr(lib.llama_cpp._lib, name)
    function.argtypes = {"dev_count": [], "dev_get": [ctypes.c_size_t]}.get(
        name.removeprefix("ggml_backend_"), [ctypes.c_void_p]
    )
    function.restype = ctypes.c_char_p if name.endswith("_name") else ctypes.c_void_p
    if name.endswith("_count"):
        function.restype = ctypes.c_size_t
    if name.endswith("_type"):
        function.restype = ctypes.c_int
    return function
