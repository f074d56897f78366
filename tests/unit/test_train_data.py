"""Training rows: full, a function of their window number, of training files only."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from codespec.train import corpus, sources, tokenizer
from codespec.train.data import Rows, Windows
from tests import training


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> corpus.Corpus:
    return training.small_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def words(data: corpus.Corpus) -> Tokenizer:
    return training.small_tokenizer(data)


def test_rows_are_full_and_resume_at_any_window(data: corpus.Corpus, words: Tokenizer) -> None:
    whole, at_third = Rows(data, words, 100, seed=3).batch(0, 6)
    assert whole.shape == (6, 101)
    assert at_third >= 6
    first, window = Rows(data, words, 100, seed=3).batch(0, 2)
    rest, end = Rows(data, words, 100, seed=3).batch(window, 4)
    assert torch.equal(torch.cat((first, rest)), whole)
    assert end == at_third


def test_another_seed_is_another_stream(data: corpus.Corpus, words: Tokenizer) -> None:
    a, _ = Rows(data, words, 100, seed=3).batch(0, 4)
    b, _ = Rows(data, words, 100, seed=4).batch(0, 4)
    assert not torch.equal(a, b)


def test_about_half_is_fim_in_both_orders(data: corpus.Corpus, words: Tokenizer) -> None:
    batch, _ = Rows(data, words, 100, seed=5).batch(0, 200)
    prefix, suffix = (words.token_to_id(t) for t in (tokenizer.FIM_PREFIX, tokenizer.FIM_SUFFIX))
    n_fim = int((batch == prefix).any(1).sum())
    spm = ((batch[:, :-1] == prefix) & (batch[:, 1:] == suffix)).any(1)
    assert 70 < n_fim < 150
    assert 0.3 * n_fim < int(spm.sum()) < 0.7 * n_fim


def test_weights_pick_out_the_middles_and_their_ends(data: corpus.Corpus, words: Tokenizer) -> None:
    rows = Rows(data, words, 100, seed=0)
    end, prefix, suffix, middle = 0, 1, 2, 3
    batch = torch.tensor([[50, end, prefix, 60, suffix, 61, middle, 62, 63, end, 51, 52]])
    weights = rows.weights(batch, 0.25)
    # One weight for each predicted token, the first of which is at position 1.
    counted = batch[0, 1:][weights[0] == 1.0]
    assert counted.tolist() == [62, 63, end]
    assert weights[weights != 1.0].unique().tolist() == [0.25]


def test_the_share_of_fim_is_as_asked(data: corpus.Corpus, words: Tokenizer) -> None:
    prefix = words.token_to_id(tokenizer.FIM_PREFIX)
    for rate in (0.0, 1.0):
        batch, _ = Rows(data, words, 100, seed=5, fim_rate=rate).batch(0, 30)
        assert bool((batch == prefix).any()) == (rate > 0)


def test_an_epoch_visits_every_window_once_and_the_next_in_another_order(
    data: corpus.Corpus,
) -> None:
    windows = Windows(data, "train", 64, seed=0)
    n = len(windows)
    first = [windows[i][0] for i in range(n)]
    second = [windows[n + i][0] for i in range(n)]
    assert sorted(first) == sorted(second)
    assert first != second
    starts = sum(windows[i][1] for i in range(n))
    assert starts == len(data.documents("train"))


def test_windows_hold_training_text_only(data: corpus.Corpus) -> None:
    windows = Windows(data, "train", 64, seed=0)
    trained = [data.text(int(d)) for d in data.documents("train")]
    held_out = [data.text(int(d)) for d in data.documents("heldout")]
    for i in range(0, len(windows), 7):
        text, _ = windows[i]
        assert any(text in t for t in trained)
        assert len(text) < 80 or not any(text in t for t in held_out)


def test_an_empty_split_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    corpus.build([sources.extra_folder(folder, "MIT", 10**9)], tmp_path / "out")
    with pytest.raises(ValueError, match="no documents in its train split"):
        Windows(corpus.Corpus(tmp_path / "out"), "train", 64, seed=0)
