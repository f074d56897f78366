"""llama.cpp reads the files that training writes: same logits, same tokens, and it stops at the
same tokens."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.errors import ModelError
from codespec.train import agreement, bpe
from codespec.training import export, qwen2
from codespec.training.network import Llama
from tests import training

BUNDLED = Path(export.__file__).parents[1] / "models" / "bundled"
NAMES = ("codespec-base", "codespec-draft")
ENCODE_TEXTS = [
    "def f(self, x=1234):\n\treturn {'a': [x**2 for x in range(10)]}\n",
    "  # Grüße, 世界 🐍 — \u200b zero-width, naïve café\r\nclass\tA :\r\n\r\n\r\n   pass",
    "we're they'LL I'd don't  \n \n\n   x  =  0xFFee  \t\n",
    "<|fim_prefix|> and <|endoftext|> are text here, not control tokens",
    "",
    " ",
    "\n" * 7 + " " * 41 + "\\" * 9 + "٣٤٥ ½ Ⅷ",
    "日本語のコメント한국어العربية",
]


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return bpe.train([training.source_text(i) for i in range(20)], training.N_VOCAB)


@pytest.fixture(scope="module")
def model() -> Llama:
    torch.manual_seed(0)
    fresh = Llama(training.TINY)
    with torch.no_grad():
        for (
            weight
        ) in fresh.parameters():  # fresh blocks are the identity: give them something to do
            weight.add_(0.2 * torch.randn_like(weight))
    return fresh.eval()


def random_tokens(n: int) -> list[int]:
    return np.random.default_rng(0).integers(0, training.N_VOCAB, n).tolist()


def test_f32_logits_agree(tmp_path: Path, model: Llama, words: Tokenizer) -> None:
    path = tmp_path / "m.gguf"
    export.write_gguf(path, model, words, "f32", "tiny")
    result = agreement.compare(model, path, random_tokens(training.TINY.n_ctx))
    assert result.logit_std > 0.5
    assert result.max_difference < 1e-4 * result.logit_std
    assert result.argmax == 1.0


@pytest.mark.parametrize(("quantisation", "tolerance"), [("f16", 0.02), ("q8_0", 0.35)])
def test_quantised_logits_agree_with_the_weights_in_the_file(
    tmp_path: Path, model: Llama, words: Tokenizer, quantisation: str, tolerance: float
) -> None:
    """The rest of the difference is llama.cpp's arithmetic, which rounds the activations, too: at a
    width of 32 far more noise than in a real model. A wrong tensor would differ by several
    deviations."""
    path = tmp_path / "m.gguf"
    export.write_gguf(path, model, words, quantisation, "tiny")
    own, _ = export.read_gguf(path)
    result = agreement.compare(own, path, random_tokens(training.TINY.n_ctx))
    assert result.max_difference < tolerance * result.logit_std
    assert result.argmax > 0.85


def test_reading_gives_back_what_was_written(
    tmp_path: Path, model: Llama, words: Tokenizer
) -> None:
    path = tmp_path / "m.gguf"
    export.write_gguf(path, model, words, "f32", "tiny")
    again, words_again = export.read_gguf(path)
    assert dataclasses.replace(again.config, norm_eps=model.config.norm_eps) == model.config
    assert again.config.norm_eps == pytest.approx(model.config.norm_eps)
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
    for text in ENCODE_TEXTS:
        assert words_again.encode(text).ids == words.encode(text).ids
    assert words_again.token_to_id(qwen2.FIM_MIDDLE) == words.token_to_id(qwen2.FIM_MIDDLE)


def test_llama_cpp_sees_the_special_tokens(tmp_path: Path, model: Llama, words: Tokenizer) -> None:
    path = tmp_path / "m.gguf"
    export.write_gguf(path, model, words, "q8_0", "tiny", fim_order="spm")
    loaded = load_model(path, vocab_only=True)
    try:
        check_special_tokens(loaded.info.fim, loaded.info.eog, loaded.info.bos)
        assert loaded.info.name == "tiny"
    finally:
        loaded.close()


def check_special_tokens(fim: object, eog: frozenset[int], bos: int | None) -> None:
    end, prefix, suffix, middle, pad, repository, separator = range(7)
    assert fim is not None
    assert (fim.prefix, fim.suffix, fim.middle) == (prefix, suffix, middle)  # type: ignore[attr-defined]
    assert bos is None, "llama.cpp must not put a token before the prompt"
    # Written out, so that a change in llama.cpp's rules for the end of generation is noticed.
    ends = {end, repository, separator, *fim.markers}  # type: ignore[attr-defined]
    assert ends <= eog <= {*ends, pad}


def test_llama_cpp_tokenises_as_the_library_does(
    tmp_path: Path, model: Llama, words: Tokenizer
) -> None:
    path = tmp_path / "m.gguf"
    export.write_gguf(path, model, words, "f16", "tiny")
    check_tokenisation(path, words)


def check_tokenisation(path: Path, words: Tokenizer) -> None:
    plain = bpe.as_text(words)
    loaded = load_model(path, vocab_only=True)
    try:
        theirs = LlamaTokenizer(loaded)
        sources = [p.read_text(encoding="utf-8") for p in Path(export.__file__).parent.glob("*.py")]
        for text in ENCODE_TEXTS + sources:
            ids = theirs.encode(text).tolist()
            assert ids == plain.encode(text).ids
            assert theirs.decode(ids).decode() == text
    finally:
        loaded.close()


def test_a_tokenizer_too_large_for_the_model_is_refused(tmp_path: Path, model: Llama) -> None:
    big = bpe.train([training.source_text(i) for i in range(20)], training.N_VOCAB + 20)
    with pytest.raises(ValueError, match=r"room for 320"):
        export.write_gguf(tmp_path / "m.gguf", model, big, "f32", "tiny")


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"other\.gguf"):
        export.read_gguf(path)
    writer = gguf.GGUFWriter(str(path), "gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelError, match="llama"):
        export.read_gguf(path)


@pytest.mark.parametrize("name", NAMES)
def test_the_bundled_model_is_what_the_project_promises(name: str) -> None:
    path = BUNDLED / f"{name}.gguf"
    limit = {"codespec-base": 20, "codespec-draft": 3}[name] * 2**20
    assert path.stat().st_size <= limit
    loaded = load_model(path)
    try:
        check_special_tokens(loaded.info.fim, loaded.info.eog, loaded.info.bos)
        assert loaded.info.n_ctx == 2048
    finally:
        loaded.close()
    model, words = export.read_gguf(path)
    check_tokenisation(path, words)
    ids = words.encode(Path(export.__file__).read_text(encoding="utf-8")).ids[:256]
    result = agreement.compare(model, path, ids)
    assert result.max_difference < 0.2 * result.logit_std
    assert result.argmax > 0.95


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_that_of_the_bundled_file(name: str) -> None:
    """A model that is exchanged without its card fails here."""
    path = BUNDLED / f"{name}.gguf"
    config = export.read_gguf(path)[0].config
    card = (BUNDLED / "CARD.md").read_text(encoding="utf-8")
    cells = [config.n_params, path.stat().st_size, config.n_embd, config.n_layers]
    start = " | ".join([path.name, *(f"{cell:,}" for cell in cells)])
    assert f"| {start} |" in card
    assert f"| {path.name} | 0." in card or f"| {path.name} | 1." in card, "bits per byte"
    assert "Apache License 2.0" in card
    for heading in ("Results on packages never trained on", "Training", "Corpus", "By licence"):
        assert heading in card


def test_the_bundled_pair_shares_its_tokenizer() -> None:
    hashes: set[str] = set()
    for name in NAMES:
        loaded = load_model(BUNDLED / f"{name}.gguf", vocab_only=True)
        hashes.add(loaded.info.tokenizer_hash)
        loaded.close()
    assert len(hashes) == 1
