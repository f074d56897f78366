"""Models with the vocabularies of FIM families."""

from __future__ import annotations

from pathlib import Path

import gguf
from tokenizers.pre_tokenizers import ByteLevel

from codespec.training import export
from codespec.training.network import Llama
from tests import training

_BYTES = sorted(ByteLevel.alphabet())


def model_file(folder: Path, name: str, markers: tuple[str, ...]) -> Path:
    """A model of no use whose vocabulary is bytes, an end, and these markers."""
    control = ["<|endoftext|>", *markers]
    unused = [f"<|unused_{i}|>" for i in range(training.N_VOCAB - len(_BYTES) - 1 - len(control))]

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_list([*_BYTES, "ĠĠ", *control, *unused])
        kinds = [gguf.TokenType.NORMAL] * (len(_BYTES) + 1)
        kinds += [gguf.TokenType.CONTROL] * len(control)
        writer.add_token_types([*kinds, *[gguf.TokenType.UNUSED] * len(unused)])
        writer.add_token_merges(["Ġ Ġ"])
        writer.add_eos_token_id(len(_BYTES) + 1)

    path = folder / "model.gguf"
    export.write_model(path, Llama(training.TINY).eval(), "f32", name, add)
    return path
