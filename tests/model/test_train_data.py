"""Training rows: full, a function of their window number, of training files only."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from codespec.backends.fake import ByteTokenizer, FakeTarget, hashed_logits
from codespec.context.snippets import render
from codespec.train import corpus, corpus_sources
from codespec.train.data import CONTEXT_SHARE, Rows, Windows
from codespec.train.feed import Feed, Position, processes, weights
from codespec.train.fim_cuts import Fim
from codespec.train.recipe import Phase
from codespec.training import qwen2
from codespec.types import FileMarkers, FimTokens, Snippet, Tokens
from tests import training


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> corpus.Corpus:
    return training.small_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def words(data: corpus.Corpus) -> Tokenizer:
    return training.small_tokenizer(data)


class Words(ByteTokenizer):
    """The training tokenizer with the manners of a served one."""

    def __init__(self, words: Tokenizer) -> None:
        self._fim = Fim(words)

    def encode(self, text: str | bytes) -> Tokens:
        assert isinstance(text, str)
        return np.array(self._fim.encode(text), np.int32)


def test_rows_are_full_and_resume_at_any_window(data: corpus.Corpus, words: Tokenizer) -> None:
    whole, at_third = Rows(data, words, 100, seed=3).batch(0, 6)
    assert whole.shape == (6, 101)
    assert at_third >= 6
    first, window = Rows(data, words, 100, seed=3).batch(0, 2)
    rest, end = Rows(data, words, 100, seed=3).batch(window, 4)
    assert np.array_equal(np.concatenate((first, rest)), whole)
    assert end == at_third


def test_another_seed_is_another_stream(data: corpus.Corpus, words: Tokenizer) -> None:
    a, _ = Rows(data, words, 100, seed=3).batch(0, 4)
    b, _ = Rows(data, words, 100, seed=4).batch(0, 4)
    assert not np.array_equal(a, b)


def test_about_half_is_fim_in_both_orders(data: corpus.Corpus, words: Tokenizer) -> None:
    batch, _ = Rows(data, words, 100, seed=5).batch(0, 200)
    prefix, suffix = (words.token_to_id(t) for t in (qwen2.FIM_PREFIX, qwen2.FIM_SUFFIX))
    n_fim = int((batch == prefix).any(1).sum())
    spm = ((batch[:, :-1] == prefix) & (batch[:, 1:] == suffix)).any(1)
    assert 70 < n_fim < 150
    assert 0.3 * n_fim < int(spm.sum()) < 0.7 * n_fim


def test_weights_pick_out_the_middles_and_their_ends() -> None:
    end, prefix, suffix, middle = 0, 1, 2, 3
    batch = torch.tensor([[50, end, prefix, 60, suffix, 61, middle, 62, 63, end, 51, end]])
    made = weights(batch, middle, end, 0.25)
    # One weight for each predicted token, the first of which is at position 1.
    assert batch[0, 1:][made[0] == 1.0].tolist() == [62, 63, end]
    assert made[made != 1.0].unique().tolist() == [0.25]
    made = weights(batch, middle, end, 0.25, 3.0)
    assert made[0].tolist() == [0.25] * 6 + [1.0, 1.0, 3.0, 0.25, 0.25], "the last is context"


def test_rows_of_a_repository_are_what_the_prompt_builder_shows(
    data: corpus.Corpus, words: Tokenizer
) -> None:
    """Markers, names and paths as served, other files of the same package and split, the file of
    the cursor last."""
    repository, file, prefix = (
        words.token_to_id(t) for t in (qwen2.REPO_NAME, qwen2.FILE_SEPARATOR, qwen2.FIM_PREFIX)
    )
    assert repository is not None
    assert file is not None
    assert prefix is not None
    trained = {data.path(int(d)): data.text(int(d)) for d in data.documents("train")}
    info = dataclasses.replace(
        FakeTarget(hashed_logits(training.N_VOCAB), training.N_VOCAB).info,
        fim=FimTokens(1, 2, 3, files=FileMarkers(repository, file)),
    )
    rows = Rows(data, words, 1200, seed=3, fim_rate=1.0, repository_rate=1.0)
    window = n_shown = 0
    for _ in range(20):
        row, window = rows.row(window)
        assert row[0] == repository
        assert row.count(repository) == 1
        head = row[: row.index(prefix)]
        assert len(head) <= 1201 * CONTEXT_SHARE
        name, *files, last = words.decode(head, skip_special_tokens=False).split("<|file_sep|>")
        assert name == "<|repo_name|>ours\n"
        assert last.removesuffix("\n") in trained
        snippets: list[Snippet] = []
        for shown in files:
            path, _, piece = shown.partition("\n")
            assert piece.removesuffix("\n") in trained[path]
            assert path != last.removesuffix("\n")
            snippets.append(Snippet("buffers", "/ours/" + path, piece.removesuffix("\n")))
        n_shown += len(snippets)
        served = render(snippets, info, Words(words), "/ours/" + last.strip(), "/ours")
        assert served.before.tolist() == head
        assert not len(served.inside)
    assert n_shown > 20


def test_rows_of_repositories_occur_as_often_as_asked(
    data: corpus.Corpus, words: Tokenizer
) -> None:
    repository = words.token_to_id(qwen2.REPO_NAME)
    rows = Rows(data, words, 600, seed=3, repository_rate=0.3)
    batch, _ = rows.batch(0, 200)
    share = (batch[:, 0] == repository).mean()
    assert share == pytest.approx(0.3, abs=0.1)
    again, _ = Rows(data, words, 600, seed=3, repository_rate=0.3).batch(0, 200)
    assert np.array_equal(batch, again)


def test_the_share_of_fim_is_as_asked(data: corpus.Corpus, words: Tokenizer) -> None:
    prefix = words.token_to_id(qwen2.FIM_PREFIX)
    for rate in (0.0, 1.0):
        batch, _ = Rows(data, words, 100, seed=5, fim_rate=rate).batch(0, 30)
        assert bool((batch == prefix).any()) == (rate > 0)


def test_an_epoch_visits_every_window_once_and_the_next_in_another_order(
    data: corpus.Corpus,
) -> None:
    windows = Windows(data, "train", 64, seed=0)
    n = len(windows)
    first = [windows[i].text for i in range(n)]
    second = [windows[n + i].text for i in range(n)]
    assert sorted(first) == sorted(second)
    assert first != second
    starts = sum(windows[i].is_start for i in range(n))
    assert starts == len(data.documents("train"))


def test_windows_hold_training_text_only(data: corpus.Corpus) -> None:
    windows = Windows(data, "train", 64, seed=0)
    trained = [data.text(int(d)) for d in data.documents("train")]
    held_out = [data.text(int(d)) for d in data.documents("heldout")]
    for i in range(0, len(windows), 7):
        text = windows[i].text
        assert any(text in t for t in trained)
        assert len(text) < 80 or not any(text in t for t in held_out)


def test_streams_deal_out_the_windows(data: corpus.Corpus, words: Tokenizer) -> None:
    """Every window belongs to one stream."""
    one = Rows(data, words, 40, seed=3, fim_rate=0.0)
    three = Rows(data, words, 40, seed=3, fim_rate=0.0, n_streams=3)
    assert one.row(0)[0] == three.row(0, 0)[0]
    assert one.row(4)[0] == three.row(1, 1)[0]
    assert one.row(5)[0] == three.row(1, 2)[0]


def test_batches_made_by_processes_are_the_same_and_resume(
    data: corpus.Corpus, words: Tokenizer
) -> None:
    phase = Phase(1.0, 64, 2, 1, context_weight=0.5, repository_rate=0.5)
    here, there = Position([0, 0, 0]), Position([0, 0, 0])
    feed = Feed(data, words, phase, 1, here)
    expected = [feed.batch() for _ in range(7)]
    n_made = 0
    with processes(1, data, words) as pool:
        other = Phase(1.0, 32, 1, 1)
        with closing(Feed(data, words, other, 1, Position([0]), pool)) as another:
            assert another.batch()[0].shape == (1, 33)
        for n in (4, 3):  # begun anew from the position
            with closing(Feed(data, words, phase, 1, there, pool)) as ahead:
                for _ in range(n):
                    for ours, theirs in zip(ahead.batch(), expected[n_made], strict=True):
                        assert torch.equal(ours, theirs)
                    n_made += 1
    assert there == here
    assert here.turn == 7


def test_an_empty_split_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    corpus.build([corpus_sources.extra_folder(folder, "MIT", 10**9)], tmp_path / "out")
    with pytest.raises(ValueError, match="no documents in its train split"):
        Windows(corpus.Corpus(tmp_path / "out"), "train", 64, seed=0)
