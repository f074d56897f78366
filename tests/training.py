"""A miniature of everything training needs: sources on disk, corpus, tokenizer, recipe."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import gguf
from tokenizers import Tokenizer

from codespec.models.distilled import DRAFT_FOR_KEY
from codespec.train import bpe, corpus, corpus_sources
from codespec.train.recipe import Phase, Recipe
from codespec.training import export
from codespec.training.network import Llama, ModelConfig

N_VOCAB = 320
TINY = ModelConfig(
    n_vocab=N_VOCAB, n_embd=32, n_layers=2, n_heads=2, n_kv_heads=1, head_dim=16, n_ff=64, n_ctx=128
)
RECIPE = Recipe(
    "tiny",
    TINY,
    (Phase(0.5, 32, 4, 2), Phase(1.0, 64, 2, 1)),
    warmup_steps=2,
)


def source_text(seed: int, n_functions: int = 12) -> str:
    """Python of no use whose files differ from one another and repeat themselves, as code does."""
    rng = random.Random(seed)
    words = ["alpha", "beta", "gamma", "delta", "value", "result", "index", "total", "name", "path"]
    lines = [f'"""Module {rng.random():.6f}."""', "", "import os", ""]
    for i in range(n_functions):
        a, b, c = rng.sample(words, 3)
        lines += [
            f"def {a}_{b}_{i}({b}, {c}={rng.randrange(999)}):",
            f"    if {b} is None:",
            f"        raise ValueError('{c} {rng.randrange(999)}')",
            f"    {a} = [{b} * {rng.randrange(99)} for {b} in range({c})]",
            f"    return os.path.join({a}, {b})",
            "",
        ]
    return "\n".join(lines)


def install(folder: Path, name: str, licence: str | None, n_files: int, seed: int) -> Path:
    """An installed distribution as pip leaves it. Returns the folder of its sources."""
    package = folder / name
    package.mkdir(parents=True)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    record: list[str] = []
    for i in range(n_files):
        (package / f"m{i}.py").write_text(source_text(seed * 1000 + i), encoding="utf-8")
        record.append(f"{name}/m{i}.py,,")
    head = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n"
    if licence is not None:
        head += f"License-Expression: {licence}\n"
    (info / "METADATA").write_text(head, encoding="utf-8")
    (info / "RECORD").write_text("\n".join(record), encoding="utf-8")
    return package


def small_corpus(folder: Path) -> corpus.Corpus:
    """150 training files, about one per cent of them for validation, and 6 held out."""
    env = folder / "env"
    install(env, "ours", "MIT", 150, seed=1)
    install(env, "click", "BSD-3-Clause", 6, seed=2)
    corpus.build(list(corpus_sources.python_environment(env, 10_000_000)), folder / "corpus")
    return corpus.Corpus(folder / "corpus")


def small_tokenizer(data: corpus.Corpus) -> Tokenizer:
    return bpe.train(bpe.sample(data), N_VOCAB)


def part_of_another(path: Path) -> None:
    """Writes a draft model whose tokens are a part of those of some other target."""
    words = bpe.train([source_text(i) for i in range(20)], N_VOCAB)

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_string(DRAFT_FOR_KEY, "0" * 64)
        export.add_tokenizer(writer, words, N_VOCAB)

    export.write_model(path, Llama(TINY).eval(), "f32", "part", add)


def recipe(name: str, n_embd: int) -> Recipe:
    """A tiny recipe of this name and width."""
    shape = dataclasses.replace(TINY, n_embd=n_embd)
    return dataclasses.replace(RECIPE, name=name, model=shape)
