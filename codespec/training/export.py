"""GGUF out and in: a trained model becomes the file llama.cpp serves, and any such file can be
evaluated in torch.

Architecture `llama`, tokenizer model `gpt2` (byte-level BPE) with pre-tokenizer `qwen2`. The end
token is EOS, BOS and padding at once; llama.cpp stops at EOS and, by their ids, at the two
repository tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, models

from codespec.errors import ModelError
from codespec.training import qwen2
from codespec.training.network import Llama, ModelConfig

OTHER_KIND = "Give a file of the kind that codespec.train exports."
QUANTISATIONS = {
    "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}

# Name of a weight in torch, after its block's number, and in GGUF.
BLOCK_WEIGHTS = {
    "attn_norm": "attn_norm",
    "attn.q": "attn_q",
    "attn.k": "attn_k",
    "attn.v": "attn_v",
    "attn.out": "attn_output",
    "ffn_norm": "ffn_norm",
    "ffn.gate": "ffn_gate",
    "ffn.up": "ffn_up",
    "ffn.down": "ffn_down",
}
FIM_ORDER_KEY = "codespec.fim_order"
FIM_IDS = {
    "fim_pre": qwen2.FIM_PREFIX,
    "fim_suf": qwen2.FIM_SUFFIX,
    "fim_mid": qwen2.FIM_MIDDLE,
    "fim_pad": qwen2.FIM_PAD,
    "fim_rep": qwen2.REPO_NAME,
    "fim_sep": qwen2.FILE_SEPARATOR,
}


def tensor_names(n_layers: int) -> Iterator[tuple[str, str]]:
    """(torch name, GGUF name) of every weight."""
    yield "embedding.weight", "token_embd.weight"
    for i in range(n_layers):
        for ours, theirs in BLOCK_WEIGHTS.items():
            yield f"blocks.{i}.{ours}.weight", f"blk.{i}.{theirs}.weight"
    yield "norm.weight", "output_norm.weight"


def write_gguf(
    path: Path,
    model: Llama,
    tokenizer: Tokenizer,
    quantisation: str,
    name: str,
    fim_order: str = "spm",
) -> None:
    """Writes a model and the tokenizer it was trained with as one GGUF file, see `write_model`.

    fim_order, "spm" or "psm", tells the prompt builder which of the two trained orders serves
    better.

    Raises: ValueError for a tokenizer larger than the model's qwen2.
    """

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_description(
            "Code completion with fill-in-the-middle, trained from scratch on permissive source"
        )
        writer.add_license("Apache-2.0")
        writer.add_string(FIM_ORDER_KEY, fim_order)
        add_tokenizer(writer, tokenizer, model.config.n_vocab)

    write_model(path, model, quantisation, name, add)


def write_model(
    path: Path,
    model: Llama,
    quantisation: str,
    name: str,
    add_vocabulary: Callable[[gguf.GGUFWriter], None],
) -> None:
    """Writes the model as one GGUF file; matrices in the quantisation (f32, f16, q8_0), norms in
    float32. add_vocabulary writes the metadata that is not about the shape.

    Raises: ValueError for an unknown quantisation.
    """
    if quantisation not in QUANTISATIONS:
        raise ValueError(f"unknown quantisation {quantisation}; one of {', '.join(QUANTISATIONS)}")
    tensor_type, file_type = QUANTISATIONS[quantisation]
    config = model.config
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name(name)
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(config.n_ctx)
    writer.add_embedding_length(config.n_embd)
    writer.add_block_count(config.n_layers)
    writer.add_feed_forward_length(config.n_ff)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.n_kv_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_vocab_size(config.n_vocab)
    add_vocabulary(writer)
    weights = model.state_dict()
    for ours, theirs in tensor_names(config.n_layers):
        array = weights[ours].detach().float().cpu().numpy()
        if array.ndim == 1:
            writer.add_tensor(theirs, array)
        else:
            writer.add_tensor(
                theirs, gguf.quants.quantize(array, tensor_type), raw_dtype=tensor_type
            )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Tokenizer, n_vocab: int) -> None:
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    added = {token["content"]: int(token["id"]) for token in content["added_tokens"]}
    entries = {**content["model"]["vocab"], **added}
    if len(entries) > n_vocab:
        raise ValueError(f"the tokenizer has {len(entries)} tokens, the model room for {n_vocab}")
    tokens = [f"<|unused_{i}|>" for i in range(n_vocab)]
    types = [gguf.TokenType.UNUSED] * n_vocab
    for token, index in entries.items():
        tokens[index] = token
        types[index] = gguf.TokenType.CONTROL if token in added else gguf.TokenType.NORMAL
    merges = [
        pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"]["merges"]
    ]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    end = added[qwen2.END]
    writer.add_bos_token_id(end)
    writer.add_eos_token_id(end)
    writer.add_pad_token_id(end)
    writer.add_add_bos_token(False)
    for key, token in FIM_IDS.items():
        writer.add_uint32(f"tokenizer.ggml.{key}_token_id", added[token])


def read_gguf(path: Path) -> tuple[Llama, Tokenizer]:
    """Model, its weights dequantised to float32, and tokenizer of a GGUF file like `write_gguf`'s.

    Raises: ModelError if the file cannot be read or is of another architecture or tokenizer.
    """
    try:
        reader = gguf.GGUFReader(path)
    except (OSError, ValueError, IndexError) as error:
        raise ModelError(f"{path}: not a readable GGUF file ({error})") from error

    def field(key: str) -> Any:
        entry = reader.get_field(key)
        if entry is None:
            raise ModelError(f"{path} lacks {key}", OTHER_KIND)
        return entry.contents()

    if field("general.architecture") != "llama" or field("tokenizer.ggml.pre") != "qwen2":
        raise ModelError(f"{path} is not a llama model with the pre-tokenizer qwen2", OTHER_KIND)
    tokens = field("tokenizer.ggml.tokens")
    config = ModelConfig(
        n_vocab=len(tokens),
        n_embd=field("llama.embedding_length"),
        n_layers=field("llama.block_count"),
        n_heads=field("llama.attention.head_count"),
        n_kv_heads=field("llama.attention.head_count_kv"),
        head_dim=field("llama.rope.dimension_count"),
        n_ff=field("llama.feed_forward_length"),
        n_ctx=field("llama.context_length"),
        rope_theta=field("llama.rope.freq_base"),
        norm_eps=field("llama.attention.layer_norm_rms_epsilon"),
    )
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    weights: dict[str, torch.Tensor] = {}
    for ours, theirs in tensor_names(config.n_layers):
        if theirs not in tensors:
            raise ModelError(f"{path} lacks the tensor {theirs}", OTHER_KIND)
        tensor = tensors[theirs]
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        weights[ours] = torch.from_numpy(np.array(array, np.float32))
    model = Llama(config)
    model.load_state_dict(weights)
    return model.eval(), tokenizer_of(tokens, field("tokenizer.ggml.merges"))


def tokenizer_of(tokens: list[str], merges: list[str]) -> Tokenizer:
    """The Hugging Face tokenizer with these tokens (index = id) and merges ("left right")."""
    vocab = {token: index for index, token in enumerate(tokens)}
    pairs = [(left, right) for left, right in (merge.split(" ") for merge in merges)]
    tokenizer = qwen2.with_qwen2_splits(Tokenizer(models.BPE(vocab=vocab, merges=pairs)))
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t in qwen2.SPECIAL]
    )
    return tokenizer
