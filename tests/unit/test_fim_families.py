"""Models of each family are asked as they were trained to be."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest
from tokenizers.pre_tokenizers import ByteLevel

from codespec.backends.llama import load_model
from codespec.config import load_settings
from codespec.context.fim import assemble
from codespec.engine.local import LocalEngine
from codespec.requests import CompletionRequest
from codespec.train import export
from codespec.train.model import Llama
from tests import training

BYTES = sorted(ByteLevel.alphabet())
STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>")
MISTRAL = ("[PREFIX]", "[SUFFIX]", "[MIDDLE]")
SEED = ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>")


def model_file(folder: Path, name: str, markers: tuple[str, ...]) -> Path:
    """A model of no use whose vocabulary is bytes, an end, and these markers."""
    control = ["<|endoftext|>", *markers]
    unused = [f"<|unused_{i}|>" for i in range(training.N_VOCAB - len(BYTES) - 1 - len(control))]

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_list([*BYTES, "ĠĠ", *control, *unused])
        kinds = [gguf.TokenType.NORMAL] * (len(BYTES) + 1)
        kinds += [gguf.TokenType.CONTROL] * len(control)
        writer.add_token_types([*kinds, *[gguf.TokenType.UNUSED] * len(unused)])
        writer.add_token_merges(["Ġ Ġ"])
        writer.add_eos_token_id(len(BYTES) + 1)

    path = folder / "model.gguf"
    export.write_model(path, Llama(training.TINY).eval(), "f32", name, add)
    return path


def prompt_of(path: Path) -> str:
    """What it reads for "a\\nb(" before the cursor and ")" after it."""
    model = load_model(path, vocab_only=True)
    texts = model.token_texts()
    ids = {text: i for i, text in enumerate(texts)}
    left, right = ([ids[c] for c in text] for text in ("aĊb(", ")"))
    prompt, _ = assemble(model.info, left, right, n_in_line=2)
    model.close()
    return "".join(texts[t] for t in prompt.tolist())


@pytest.mark.parametrize(
    ("name", "markers", "prompt"),
    [
        ("StarCoder2 3B", STARCODER, "<fim_prefix>aĊ<fim_suffix>)<fim_middle>b("),
        ("Mellum 4b Base", STARCODER, "<fim_suffix>)<fim_prefix>aĊ<fim_middle>b("),
        ("Seed-Coder-8B-Base", SEED, "<[fim-suffix]>)<[fim-prefix]>aĊ<[fim-middle]>b("),
        ("Codestral-22B-v0.1", MISTRAL, "[SUFFIX])[PREFIX]aĊb("),
        # The same vocabulary, but nobody taught them what its markers are for.
        ("Mistral-7B-v0.3", MISTRAL, "aĊb("),
        ("mamba-codestral-7B-v0.1", MISTRAL, "aĊb("),
        ("Llama 3", (), "aĊb("),
    ],
)
def test_each_family_has_its_own_order(
    tmp_path: Path, name: str, markers: tuple[str, ...], prompt: str
) -> None:
    assert prompt_of(model_file(tmp_path, name, markers)) == prompt


def test_a_file_may_tell_its_family_where_its_content_does_not(tmp_path: Path) -> None:
    path = model_file(tmp_path, "", MISTRAL)
    assert prompt_of(path) == "aĊb("
    assert prompt_of(path.rename(tmp_path / "codestral-22b-q4.gguf")).startswith("[SUFFIX]")


@pytest.mark.parametrize(("name", "markers"), [("StarCoder2", STARCODER), ("Codestral", MISTRAL)])
def test_what_is_written_ends_before_any_marker(
    tmp_path: Path, name: str, markers: tuple[str, ...]
) -> None:
    model = load_model(model_file(tmp_path, name, markers), vocab_only=True)
    ends = {model.token_text(t) for t in model.info.eog}
    assert ends == {"<|endoftext|>", *markers} - {"[MIDDLE]"}
    model.close()


def test_completing_with_a_model_without_a_marker_of_the_middle(tmp_path: Path) -> None:
    path = model_file(tmp_path, "Codestral", MISTRAL)
    settings = load_settings({"model": {"target": str(path)}})
    engine = LocalEngine(settings)
    made = engine.generate(CompletionRequest("x = 1\ny = (", ")\nz = 3\n", max_tokens=8))
    texts = made.context.prompt.tolist()
    assert made.context.fim
    assert engine.tokenizer.decode(texts) == b")\nz = 3\nx = 1\ny = ("
    assert made.trace.n_tokens == len(made.tokens)
    engine.close()
