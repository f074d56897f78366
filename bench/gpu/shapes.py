"""GGUF files of usual shapes with random weights: what a pass costs does not depend on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from codespec.errors import InputError

_ROUTER = "ffn_gate_inp.weight"


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """A decoder with grouped-query attention and a gated feed-forward layer.

    tied: the output layer is the embedding.
    n_experts, n_used: feed-forward layers of which a token goes through n_used; none, one for all.
    """

    name: str
    n_layers: int
    n_embd: int
    n_heads: int
    n_kv_heads: int
    n_ff: int
    n_vocab: int
    tied: bool
    n_experts: int = 0
    n_used: int = 0

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_heads

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """(GGUF name, shape as rows, columns)."""
        n_kv = self.n_kv_heads * self.head_dim
        yield "token_embd.weight", (self.n_vocab, self.n_embd)
        for i in range(self.n_layers):
            yield f"blk.{i}.attn_norm.weight", (self.n_embd,)
            yield f"blk.{i}.attn_q.weight", (self.n_embd, self.n_embd)
            yield f"blk.{i}.attn_k.weight", (n_kv, self.n_embd)
            yield f"blk.{i}.attn_v.weight", (n_kv, self.n_embd)
            yield f"blk.{i}.attn_output.weight", (self.n_embd, self.n_embd)
            yield f"blk.{i}.ffn_norm.weight", (self.n_embd,)
            if self.n_experts:
                yield f"blk.{i}.{_ROUTER}", (self.n_experts, self.n_embd)
            several, s = ((self.n_experts,), "_exps") if self.n_experts else ((), "")
            yield f"blk.{i}.ffn_gate{s}.weight", (*several, self.n_ff, self.n_embd)
            yield f"blk.{i}.ffn_up{s}.weight", (*several, self.n_ff, self.n_embd)
            yield f"blk.{i}.ffn_down{s}.weight", (*several, self.n_embd, self.n_ff)
        yield "output_norm.weight", (self.n_embd,)
        if not self.tied:
            yield "output.weight", (self.n_vocab, self.n_embd)


# The dimensions that the Qwen 2.5 report (2024) gives for its models.
SHAPES = (
    DecoderShape("0.5b", 24, 896, 14, 2, 4864, 151936, True),
    DecoderShape("1.5b", 28, 1536, 12, 2, 8960, 151936, True),
    DecoderShape("7b", 28, 3584, 28, 4, 18944, 152064, False),
    DecoderShape("14b", 48, 5120, 40, 8, 13824, 152064, False),
)
SMALL = DecoderShape("small", 4, 256, 4, 2, 512, 8192, True)
"""A shape for trying the measurements out."""

TYPES = {
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
}
_STD = 0.02
_POOL_BYTES = 1 << 24


def write_random(path: Path, shape: DecoderShape, quantisation: str, tokenizer: Path) -> None:
    """A model of that shape with the tokenizer of another GGUF file, filled up with unused tokens.

    Written tensor by tensor: memory stays below one tensor. Raises: InputError.
    """
    partial = path.with_suffix(".part")
    try:
        with closing(gguf.GGUFWriter(str(partial), "llama")) as writer:
            _write(writer, shape, quantisation, tokenizer)
        partial.rename(path)
    except OSError as e:
        raise InputError(f"{path} cannot be written: {e}", "Is the disk full?") from e
    finally:
        partial.unlink(missing_ok=True)


def _write(
    writer: gguf.GGUFWriter, shape: DecoderShape, quantisation: str, tokenizer: Path
) -> None:
    tensor_type, file_type = TYPES[quantisation]
    writer.add_name(f"{shape.name}-{quantisation}")
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(4096)
    writer.add_embedding_length(shape.n_embd)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.n_ff)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(shape.n_vocab)
    if shape.n_experts:
        writer.add_expert_count(shape.n_experts)
        writer.add_expert_used_count(shape.n_used)
    _copy_tokenizer(writer, gguf.GGUFReader(tokenizer), shape.n_vocab)
    kinds = {name: _kind(name, size, tensor_type) for name, size in shape.tensors()}
    for name, size in shape.tensors():
        kind = kinds[name]
        stored = gguf.quant_shape_to_byte_shape(size, kind)
        # Of a type that numpy does not know, the writer wants the shape in bytes.
        plain = kind == gguf.GGMLQuantizationType.F32
        dtype = np.dtype(np.float32 if plain else np.uint8)
        n_bytes = math.prod(stored)
        writer.add_tensor_info(name, size if plain else stored, dtype, n_bytes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    pool = _pool(quantisation)
    for name, size in shape.tensors():
        if kinds[name] == gguf.GGMLQuantizationType.F32:
            is_router = name.endswith(_ROUTER)
            numbers = np.random.default_rng(0).normal(size=size) if is_router else np.ones(size)
            writer.write_tensor_data(numbers.astype(np.float32))
        else:
            n_bytes = math.prod(gguf.quant_shape_to_byte_shape(size, kinds[name]))
            writer.write_tensor_data(np.resize(pool, n_bytes))


def _kind(
    name: str, size: tuple[int, ...], tensor_type: gguf.GGMLQuantizationType
) -> gguf.GGMLQuantizationType:
    is_plain = len(size) == 1 or name.endswith(_ROUTER)
    return gguf.GGMLQuantizationType.F32 if is_plain else tensor_type


def _pool(quantisation: str) -> npt.NDArray[np.uint8]:
    """Bytes of random weights, whole blocks of them."""
    rng = np.random.default_rng(0)
    if quantisation == "f16":
        weights = rng.normal(0, _STD, _POOL_BYTES // 2).astype(np.float16)
        return weights.view(np.uint8)
    block = np.dtype([("scale", np.float16), ("weights", np.int8, 32)])
    blocks = np.zeros(_POOL_BYTES // block.itemsize, block)
    blocks["scale"] = _STD / 73  # the deviation of whole numbers even over -127 to 127
    blocks["weights"] = rng.integers(-127, 128, (len(blocks), 32))
    return blocks.view(np.uint8)


def _copy_tokenizer(writer: gguf.GGUFWriter, source: gguf.GGUFReader, n_vocab: int) -> None:
    def field(key: str) -> Any:
        entry = source.get_field(f"tokenizer.ggml.{key}")
        assert entry is not None, f"the tokenizer's file has no {key}"
        return entry.contents()

    tokens, types = list(field("tokens")), list(field("token_type"))
    n_more = n_vocab - len(tokens)
    if n_more < 0:
        raise ValueError(f"the tokenizer has {len(tokens)} tokens, the shape room for {n_vocab}")
    writer.add_tokenizer_model(field("model"))
    writer.add_tokenizer_pre(field("pre"))
    writer.add_token_list(tokens + [f"<|unused_{i}|>" for i in range(n_more)])
    writer.add_token_types(types + [int(gguf.TokenType.UNUSED)] * n_more)
    writer.add_token_merges(list(field("merges")))
    writer.add_eos_token_id(field("eos_token_id"))
    writer.add_add_bos_token(False)
    for key in ("fim_pre", "fim_suf", "fim_mid"):
        writer.add_uint32(f"tokenizer.ggml.{key}_token_id", field(f"{key}_token_id"))
