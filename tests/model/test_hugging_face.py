"""A model as a folder for other engines: the same weights in the other order, the same tokens, and
the hash by which its indexes are found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from codespec.backends.registry import open_vocabulary
from codespec.drafters.token_kinds import token_kinds
from codespec.serving.tokenizer_file import TokenizerFile
from codespec.training import export, qwen2
from codespec.training.export import read_gguf
from codespec.training.hugging_face import write_folder

BUNDLED = Path(export.__file__).parents[1] / "models" / "bundled" / "codespec-base.gguf"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(model, folder that was written of it)"""
    folder = tmp_path_factory.mktemp("model") / "written"
    model, tokenizer = read_gguf(BUNDLED)
    write_folder(folder, model, tokenizer)
    return model, folder


def rotated(x: Tensor, *, halves: bool) -> Tensor:
    """Rotary embedding of (heads, positions, dimensions), of halves or of neighbouring pairs."""
    d = x.shape[-1]
    angles = torch.outer(torch.arange(x.shape[1]), 10_000.0 ** (-torch.arange(0, d, 2) / d))
    a, b = (x[..., : d // 2], x[..., d // 2 :]) if halves else (x[..., 0::2], x[..., 1::2])
    turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.cat(turned, -1) if halves else torch.stack(turned, -1).flatten(-2)


def test_attention_is_the_same_in_the_other_order(made):
    model, folder = made
    config, ours = model.config, model.state_dict()
    theirs = load_file(folder / "model.safetensors")
    x = torch.randn(7, config.n_embd, generator=torch.Generator().manual_seed(3))

    def heads(weight: Tensor, n: int) -> Tensor:
        return (x @ weight.T).view(7, n, config.head_dim).transpose(0, 1)

    def scores(query: Tensor, key: Tensor, *, halves: bool) -> Tensor:
        q = rotated(heads(query, config.n_heads), halves=halves)
        k = rotated(heads(key, config.n_kv_heads), halves=halves)
        return q @ k.repeat_interleave(config.n_heads // config.n_kv_heads, 0).transpose(1, 2)

    for i in range(config.n_layers):
        pairs = scores(
            ours[f"blocks.{i}.attn.q.weight"], ours[f"blocks.{i}.attn.k.weight"], halves=False
        )
        name = f"model.layers.{i}.self_attn"
        halves = scores(
            theirs[f"{name}.q_proj.weight"], theirs[f"{name}.k_proj.weight"], halves=True
        )
        torch.testing.assert_close(halves, pairs, rtol=1e-4, atol=1e-3)


def test_every_other_weight_is_the_same(made):
    model, folder = made
    theirs = load_file(folder / "model.safetensors")
    assert sum(weight.numel() for weight in theirs.values()) == sum(
        weight.numel() for weight in model.state_dict().values()
    )
    ours = model.state_dict()
    for name, other in (
        ("embedding.weight", "model.embed_tokens.weight"),
        ("norm.weight", "model.norm.weight"),
        ("blocks.1.ffn.gate.weight", "model.layers.1.mlp.gate_proj.weight"),
        ("blocks.1.attn.out.weight", "model.layers.1.self_attn.o_proj.weight"),
    ):
        assert torch.equal(theirs[other], ours[name].float())
    config = json.loads((folder / "config.json").read_text())
    assert config["num_key_value_heads"] == model.config.n_kv_heads
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == [
        *range(len(qwen2.SPECIAL))
    ]


def test_the_tokenizer_is_that_of_the_gguf_file(made):
    _, folder = made
    model = open_vocabulary(BUNDLED)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in (
        "def f(x):\n\treturn x**2  # Grüße 世界\n",
        "  if (a&&b) {\r\n\r\n  }",
        "1234 <|x|>",
    ):
        assert tokenizer.encode(text).ids == model.tokenizer.encode(text).tolist()
    known = TokenizerFile(folder, model.info.n_vocab)
    assert known.hash == model.tokenizer.hash
    assert known.kinds.tolist() == token_kinds(model.tokenizer).tolist()
    assert known.pieces == [model.tokenizer.piece(i) for i in range(model.info.n_vocab)]
    assert known.fim is not None
    assert model.info.fim is not None
    assert known.fim.markers == model.info.fim.markers
