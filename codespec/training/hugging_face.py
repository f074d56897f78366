"""A trained model as a folder that other engines load (`model.safetensors`, `config.json`, the
tokenizer), from its GGUF file.

    python -m codespec.training.hugging_face MODEL.gguf FOLDER

Weights are float32. llama.cpp rotates neighbouring pairs of a head's dimensions, Hugging Face's
Llama the two halves: the rows of queries and keys are put in that order.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from codespec.training import qwen2
from codespec.training.export import read_gguf
from codespec.training.network import Llama

# Name of a block's weight in torch, and in Hugging Face's Llama.
_BLOCK_WEIGHTS = {
    "attn_norm": "input_layernorm",
    "attn.q": "self_attn.q_proj",
    "attn.k": "self_attn.k_proj",
    "attn.v": "self_attn.v_proj",
    "attn.out": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn.gate": "mlp.gate_proj",
    "ffn.up": "mlp.up_proj",
    "ffn.down": "mlp.down_proj",
}


def write_folder(folder: Path, model: Llama, tokenizer: Tokenizer) -> None:
    """Write a model and its tokenizer into a folder, which is made where it is missing."""
    config = model.config
    folder.mkdir(parents=True, exist_ok=True)
    save_file(_weights(model), folder / "model.safetensors", {"format": "pt"})
    tokenizer.save(str(folder / "tokenizer.json"))
    end = tokenizer.token_to_id(qwen2.END)
    settings: dict[str, dict[str, Any]] = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": config.n_vocab,
            "hidden_size": config.n_embd,
            "num_hidden_layers": config.n_layers,
            "num_attention_heads": config.n_heads,
            "num_key_value_heads": config.n_kv_heads,
            "head_dim": config.head_dim,
            "intermediate_size": config.n_ff,
            "hidden_act": "silu",
            "max_position_embeddings": config.n_ctx,
            "rms_norm_eps": config.norm_eps,
            "rope_theta": config.rope_theta,
            "tie_word_embeddings": True,
            "attention_bias": False,
            "mlp_bias": False,
            "bos_token_id": end,
            "eos_token_id": end,
            "pad_token_id": end,
            "dtype": "float32",
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": qwen2.END,
            "eos_token": qwen2.END,
            "pad_token": qwen2.END,
            "clean_up_tokenization_spaces": False,
            "model_max_length": config.n_ctx,
        },
        # llama.cpp ends at each of them, too.
        "generation_config.json": {
            "eos_token_id": [tokenizer.token_to_id(text) for text in qwen2.SPECIAL]
        },
    }
    for name, values in settings.items():
        (folder / name).write_text(json.dumps(values, indent=1) + "\n", "utf-8")


def _weights(model: Llama) -> dict[str, Tensor]:
    config = model.config
    ours = model.state_dict()
    weights = {
        "model.embed_tokens.weight": ours["embedding.weight"],
        "model.norm.weight": ours["norm.weight"],
    }
    n_heads = {"attn.q": config.n_heads, "attn.k": config.n_kv_heads}
    for i in range(config.n_layers):
        for name, theirs in _BLOCK_WEIGHTS.items():
            weight = ours[f"blocks.{i}.{name}.weight"]
            if name in n_heads:
                weight = _halves(weight, n_heads[name])
            weights[f"model.layers.{i}.{theirs}.weight"] = weight
    return {name: weight.float().contiguous() for name, weight in weights.items()}


def _halves(weight: Tensor, n_heads: int) -> Tensor:
    """(n_heads * d, n) rows of pairs (x0, y0, x1, y1, ...) as (x0, x1, ..., y0, y1, ...)."""
    pairs = weight.view(n_heads, -1, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a model's GGUF file as a folder.")
    parser.add_argument("model", type=Path, help="a GGUF file of ours")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    write_folder(given.folder, *read_gguf(given.model))


if __name__ == "__main__":
    main()
