"""A teacher writes down what its target says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.distill.lessons import Lessons, batch
from codespec.distill.teacher import N_TOP, Teacher, top
from codespec.distill.vocabulary import N_REDUCED, DraftVocabulary, choose

N_VOCAB = 40
EOG = 7


def teacher(eog: frozenset[int] = frozenset()) -> tuple[Teacher, FakeTarget]:
    target = FakeTarget(hashed_logits(N_VOCAB), N_VOCAB, eog=eog)
    return Teacher(target), target


def true_law(context: list[int]) -> np.ndarray:
    logits = hashed_logits(N_VOCAB)(tuple(context[-3:])).astype(np.float64)
    p = np.exp(logits - logits.max())
    return p / p.sum()


@pytest.mark.parametrize("n_prompt", [1, 2, 17, 63, 64, 65, 131])
def test_laws_are_the_targets_own(n_prompt: int) -> None:
    """Whatever the passes are that a prompt is read in."""
    prompt = np.random.default_rng(n_prompt).integers(0, N_VOCAB, n_prompt).astype(np.int32)
    taught = teacher()[0].teach(prompt, 5, 0.0, np.random.default_rng(0))
    assert taught.n_prompt == n_prompt
    assert taught.tokens[:n_prompt].tolist() == prompt.tolist()
    assert len(taught.tokens) == n_prompt + 5
    for i in range(len(taught.tokens)):
        law = true_law(taught.tokens[: i + 1].tolist())
        assert sorted(taught.ids[i].tolist()) == sorted(np.argsort(-law)[:N_TOP].tolist())
        assert np.exp(taught.log_prob[i].astype(float)) == pytest.approx(
            law[taught.ids[i]], rel=4e-3
        )
        if n_prompt - 1 <= i < len(taught.tokens) - 1:
            assert taught.tokens[i + 1] == law.argmax(), "a greedy continuation"


def test_one_teacher_reads_many_prompts() -> None:
    """The cache of one prompt is not the next one's, even where they begin alike."""
    one, _ = teacher()
    rng = np.random.default_rng(0)
    first = one.teach(np.arange(30, dtype=np.int32), 4, 0.0, rng)
    again = one.teach(np.arange(20, dtype=np.int32), 4, 0.0, rng)
    alone = teacher()[0].teach(np.arange(20, dtype=np.int32), 4, 0.0, rng)
    assert again.ids.tolist() == alone.ids.tolist()
    assert first.ids[:20].tolist() == again.ids[:20].tolist()


def test_a_continuation_ends_before_the_end_of_generation() -> None:
    ends: list[int] = []
    for seed in range(40):
        prompt = np.array([seed], np.int32)
        taught = teacher(frozenset([EOG]))[0].teach(prompt, 30, 1.0, np.random.default_rng(seed))
        assert EOG not in taught.tokens[1:].tolist()
        ends.append(len(taught.tokens))
    assert min(ends) < 31 == max(ends)


def test_sampled_continuations_follow_the_law() -> None:
    prompt = np.array([3, 1], np.int32)
    law = true_law([3, 1])
    drawn = np.zeros(N_VOCAB)
    one, _ = teacher()
    for seed in range(800):
        drawn[one.teach(prompt, 1, 1.0, np.random.default_rng(seed)).tokens[-1]] += 1
    expected = law * 800
    big = expected > 8
    assert (((drawn - expected) ** 2 / expected)[big]).sum() < 3 * big.sum()


def test_the_head_of_a_peaked_law() -> None:
    ids, log_prob = top(np.array([0.0, 50.0, 0.0, 20.0], np.float32), 3)
    assert ids.tolist() == [1, -1, -1]
    assert log_prob.tolist() == [0.0, -np.inf, -np.inf]


def test_lessons_survive_and_nothing_half_written_is_read(tmp_path) -> None:
    one, _ = teacher()
    lessons = Lessons(tmp_path)
    for i in range(5):
        prompt = np.arange(i + 2, dtype=np.int32)
        lessons.add(i % 2, one.teach(prompt, i, 0.0, np.random.default_rng(0)))
        if i in (1, 3):
            lessons.save()
    (tmp_path / "000004.tmp").write_bytes(b"half")
    again = Lessons(tmp_path)
    assert len(again.taught) == 4, "the fifth was never saved"
    for (which, a), (which_again, b) in zip(lessons.taught, again.taught, strict=False):
        assert which == which_again
        for field in dataclasses.fields(a):
            assert np.array_equal(getattr(a, field.name), getattr(b, field.name))
    assert lessons.counts(N_VOCAB).sum() > sum(len(t.tokens) for _, t in lessons.taught)


@pytest.mark.parametrize("content", [b"", b"PK", None])
def test_damaged_lessons_are_given_again(tmp_path, content: bytes | None) -> None:
    """Cut off by a loss of power, say: those before them count, those after them go with them."""
    one, _ = teacher()
    lessons = Lessons(tmp_path)
    for i in range(3):
        prompt = np.array([i, i + 1], np.int32)
        lessons.add(0, one.teach(prompt, 0, 0.0, np.random.default_rng(0)))
        lessons.save()
    assert not Lessons(tmp_path).is_damaged
    second = tmp_path / "000001.npz"
    if content is None:
        second.unlink()
    else:
        second.write_bytes(content)
    again = Lessons(tmp_path)
    assert again.is_damaged
    assert [t.tokens.tolist() for _, t in again.taught] == [[0, 1]]
    assert [path.name for path in tmp_path.iterdir()] == ["000000.npz"]


def test_batches_are_padded_and_mapped() -> None:
    one, _ = teacher()
    short = one.teach(np.array([1, 2], np.int32), 1, 0.0, np.random.default_rng(0))
    long = one.teach(np.arange(9, dtype=np.int32), 3, 0.0, np.random.default_rng(0))
    known = DraftVocabulary(N_VOCAB, np.arange(0, N_VOCAB, 2, dtype=np.int32))
    made = batch([short, long], known)
    assert made.tokens.shape == (2, 12)
    assert made.weights[0, 3:].sum() == 0
    assert made.weights[1, :8].max() < made.weights[1, 8:].min()
    assert made.tokens[1, 1] == known.n_draft - 1, "token 1 is not known"
    assert made.tokens[1, 2] == 1
    assert known.ids is not None
    kept = np.isin(long.ids[4], known.ids)
    true = np.exp(long.log_prob[4].astype(np.float32))
    assert made.probs[1, 4].numpy() == pytest.approx(np.where(kept, true, 0))
    hard = batch([long], DraftVocabulary(N_VOCAB), from_text=True)
    assert hard.ids[0, :8, 0].tolist() == long.tokens[1:9].tolist()
    assert hard.weights[0].tolist() == [1.0] * 8 + [0.0] * 4, "the prompt is the workspace's text"


def test_a_large_vocabulary_is_reduced_to_what_is_used() -> None:
    _, target = teacher(frozenset([EOG]))
    info = dataclasses.replace(target.info, n_vocab=100_000, eog=frozenset([99_999]))
    counts = np.zeros(100_000)
    counts[50:20_050] = np.arange(20_000) + 1
    known = np.zeros(100_000, np.bool_)
    vocabulary = choose(info, counts, known)
    assert vocabulary.ids is not None
    assert vocabulary.n_draft == N_REDUCED
    assert 99_999 in vocabulary.ids, "the end is needed, seen or not"
    assert 20_049 in vocabulary.ids
    assert 50 not in vocabulary.ids
    assert (np.diff(vocabulary.ids) > 0).all()
    back = vocabulary.to_draft(vocabulary.ids)
    assert back.tolist() == list(range(N_REDUCED - 1))
    few = choose(info, np.eye(1, 100_000, 5)[0], known)
    assert few.ids is not None
    assert {5, 99_999} <= set(few.ids.tolist())
    assert few.n_draft < 10
    assert choose(target.info, np.ones(N_VOCAB), np.ones(N_VOCAB, np.bool_)).ids is None
