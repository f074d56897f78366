"""A zoo: tiny models with random weights, one for each architecture of llama.cpp that people use
for code, with the bundled model's vocabulary. What they say is nonsense, but each context has its
own."""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import gguf
import numpy as np
import numpy.typing as npt

from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from tests.zoo.attentive import ATTENTIVE
from tests.zoo.parts import N_CTX, N_FF, WIDTH, Animal, Keys
from tests.zoo.recurrent import RECURRENT

Weights: TypeAlias = Callable[[str, npt.NDArray[np.float32]], npt.NDArray[np.float32]]

ANIMALS: dict[str, Animal] = {**RECURRENT, **ATTENTIVE}

_Q8_0 = gguf.GGMLQuantizationType.Q8_0
# What llama.cpp wants in full: convolutions, norms, decays, and what is added or multiplied alone.
_PLAIN = re.compile(r"conv1d|conv\.conv|norm|ssm_[ad]$|lerp|gate_inp|bias|freqs")


def write(
    path: Path,
    architecture: str,
    *,
    quantised: bool = True,
    mtp_head: bool = False,
    weights: Weights = lambda name, values: values,
    **changed: object,
) -> Path:
    """A GGUF file. quantised: matrices in q8_0, else in f16. mtp_head: with one that drafts for
    the others. weights: others in place of a tensor's, by its name. changed: keys that are others,
    with __ for the dots; None for one that is left out."""
    animal = ANIMALS[architecture]
    layers = [*animal.layers, *([animal.own] if mtp_head else [])]
    keys: Keys = {
        "context_length": N_CTX,
        "embedding_length": WIDTH,
        "feed_forward_length": N_FF,
        "block_count": len(layers),
        **({"nextn_predict_layers": 1} if mtp_head else {}),
        **animal.keys,
        **{key.replace("__", "."): value for key, value in changed.items()},
    }
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")  # some names make llama.cpp look for tokens that are not there
    for key, value in keys.items():
        if value is not None:
            writer.add_key_value(f"{architecture}.{key}", value, *_kinds(value))
    for key, field in _tokenizer().items():
        writer.add_key_value(key, field[0], *field[1])
    n_vocab = len(_tokenizer()["tokenizer.ggml.tokens"][0])
    tensors = {"token_embd.weight": (-1, WIDTH), **animal.top}
    for i, layer in enumerate(layers):
        tensors |= {f"blk.{i}.{name}": shape for name, shape in layer.items()}
    for name, shape in tensors.items():
        values = _values(name, tuple(n_vocab if n < 0 else n for n in shape))
        if name.startswith("token_embd"):
            values *= animal.loudness
        values = weights(name, values)
        if len(shape) == 1 or _PLAIN.search(name):
            writer.add_tensor(name, values)
        elif quantised and shape[-1] % 32 == 0:
            writer.add_tensor(name, gguf.quants.quantize(values, _Q8_0), raw_dtype=_Q8_0)
        else:
            writer.add_tensor(name, values.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _values(name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Random ones, always the same for a name: such that no layer explodes or says nothing."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    noise = rng.standard_normal(shape)
    if name.endswith("ssm_a"):
        values = -np.exp(0.3 * noise)
    elif "norm" in name and not name.endswith("bias"):
        values = 1 + 0.1 * noise
    elif len(shape) == 1 or "bias" in name or "lerp" in name:
        values = 0.1 * noise
    else:
        values = noise * (1 if name == "token_embd.weight" else 2 / np.sqrt(shape[-1]))
    return values.astype(np.float32)


def _kinds(value: Any) -> tuple[gguf.GGUFValueType, gguf.GGUFValueType | None]:
    if isinstance(value, list):
        return gguf.GGUFValueType.ARRAY, _kinds(value[0])[0]
    kinds = {
        bool: gguf.GGUFValueType.BOOL,
        int: gguf.GGUFValueType.UINT32,
        float: gguf.GGUFValueType.FLOAT32,
        str: gguf.GGUFValueType.STRING,
    }
    return kinds[type(value)], None


@functools.cache
def _tokenizer() -> dict[str, tuple[Any, tuple[gguf.GGUFValueType, ...]]]:
    """The bundled model's, as it stands in the file."""
    fields = gguf.GGUFReader(bundled(BUNDLED_TARGET)).fields
    return {
        name: (field.contents(), (*field.types[:1], *field.types[-1:] * (len(field.types) > 1)))
        for name, field in fields.items()
        if name.startswith("tokenizer.")
    }
