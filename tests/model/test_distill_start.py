"""Start of a distillation, for targets of the same vocabulary and of others."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from codespec.backends.llama import LlamaTokenizer, LoadedModel, load_model
from codespec.distill import vocabulary as vocabularies
from codespec.distill.start import Start
from codespec.distill.vocabulary import DraftVocabulary
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.train import bpe
from codespec.training import export, qwen2
from codespec.training.network import Llama, ModelConfig
from tests.distilling import LIBRARY

DRAFT = bundled(BUNDLED_DRAFT)


def start_for(target: LoadedModel) -> Start:
    return Start(DRAFT, target.info, LlamaTokenizer(target))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target of other tokens, most of them longer than the bundled model's."""
    words = bpe.train([(LIBRARY / "json" / "decoder.py").read_text()] * 3, 1_500)
    path = tmp_path_factory.mktemp("other") / "other.gguf"
    model = Llama(ModelConfig(1_500, 32, 1, 2, 1, 16, 64, 512))
    export.write_gguf(path, model.eval(), words, "f32", "other")
    return path


def test_of_the_same_tokens_it_is_the_bundled_model() -> None:
    target = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    start = start_for(target)
    bundled_weights = export.read_gguf(DRAFT)[0].state_dict()
    made = start.model(DraftVocabulary(target.n_vocab)).state_dict()
    assert start.is_known.all()
    assert bundled_weights.keys() == made.keys()
    assert all(torch.equal(made[name], w) for name, w in bundled_weights.items())
    target.close()


def test_of_other_tokens_each_is_its_pieces(other: Path) -> None:
    target = load_model(other, vocab_only=True)
    theirs = LlamaTokenizer(target)
    own_file = load_model(DRAFT, vocab_only=True)
    own = LlamaTokenizer(own_file)
    start = start_for(target)
    assert 0.3 < start.is_known.mean() < 1, "some are the same, some are not"
    old = export.read_gguf(DRAFT)[0].embedding.weight.detach()
    made = start.model(DraftVocabulary(target.n_vocab)).embedding.weight.detach()
    n_longer = 0
    for token in range(target.n_vocab):
        piece = theirs.piece(token)
        if not piece or not piece.isascii():
            continue
        pieces = own.encode(piece).tolist()
        n_longer += len(pieces) > 1
        assert start.is_known[token] == (len(pieces) == 1)
        assert torch.equal(made[token], old[pieces].mean(0)), piece
    assert n_longer > 50
    ours, others = own_file.info.fim, target.info.fim
    assert ours is not None
    assert others is not None
    assert ours.files is not None
    assert others.files is not None
    for theirs_of, ours_of, names in (
        (others, ours, ("prefix", "suffix", "middle")),
        (others.files, ours.files, ("repository", "file")),
    ):
        for name in names:
            assert torch.equal(made[getattr(theirs_of, name)], old[getattr(ours_of, name)]), name
    end = qwen2.SPECIAL.index(qwen2.END)
    assert torch.equal(made[end], old[end])
    own_file.close()
    target.close()


def test_of_a_part_of_the_tokens_the_last_is_unknown(other: Path) -> None:
    target = load_model(other, vocab_only=True)
    start = start_for(target)
    whole = start.model(DraftVocabulary(target.n_vocab)).embedding.weight.detach()
    ids = np.array([5, 40, 900], np.int32)
    part = start.model(DraftVocabulary(target.n_vocab, ids)).embedding.weight.detach()
    assert torch.equal(part[:3], whole[ids])
    assert part.shape[0] == 4
    target.close()


def test_it_knows_code_before_it_learns_anything(other: Path) -> None:
    """In tokens it was never trained on: better than chance by far, as it is to learn little."""
    target = load_model(other, vocab_only=True)
    theirs = LlamaTokenizer(target)
    text = (LIBRARY / "json" / "encoder.py").read_text()
    tokens = torch.from_numpy(theirs.encode(text)[:400].astype(np.int64))[None]
    vocabulary = DraftVocabulary(target.n_vocab)
    with torch.no_grad():
        begun = start_for(target).model(vocabulary).loss(tokens).item()
    assert begun < 0.75 * np.log(target.n_vocab)
    target.close()


def test_a_reduced_vocabulary_is_filled_with_what_is_known() -> None:
    target = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    large = dataclasses.replace(target.info, n_vocab=100_000)
    counts, is_known = np.zeros(100_000), np.zeros(100_000, np.bool_)
    counts[50_000] = 1
    is_known[60_000:90_000] = True
    chosen = vocabularies.choose(large, counts, is_known).ids
    assert chosen is not None
    assert 50_000 in chosen
    assert chosen.max() < 70_000, "those of the lowest numbers"
    assert len(chosen) == vocabularies.N_REDUCED - 1
    target.close()
