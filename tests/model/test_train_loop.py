"""The training loop: it learns, it resumes exactly, and it refuses to continue another run."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from codespec.errors import InputError, ModelError
from codespec.train import corpus
from codespec.train.recipe import LARGE_DRAFT, LARGE_RECIPES, LARGE_TARGET, RECIPES, Phase, Recipe
from codespec.train.train import State, Trainer, load_model
from codespec.training.budget import TrainingBudget
from codespec.training.network import Llama
from codespec.training.optim import make_optimisers
from codespec.training.parallel import try_to_compile
from codespec.training.torch_files import write_torch
from tests import training
from tests.training import RECIPE, TINY

TOKENS = 128 * 12  # 12 steps of the first phase, or of the second


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> corpus.Corpus:
    return training.small_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def words(data: corpus.Corpus) -> Tokenizer:
    return training.small_tokenizer(data)


class StopHere(Exception):
    pass


def test_a_resumed_run_repeats_an_unbroken_one(
    tmp_path: Path, data: corpus.Corpus, words: Tokenizer
) -> None:
    """Across the change of batch shape, and with other threads: bit for bit."""
    whole = Trainer(RECIPE, data, words, tmp_path / "whole", n_workers=1)
    whole.run(TrainingBudget(tokens=TOKENS))

    def stop_at_five(state: State, _progress: float) -> None:
        if state.step == 5:
            broken.save()
            raise StopHere

    broken = Trainer(RECIPE, data, words, tmp_path / "broken", n_workers=2)
    with pytest.raises(StopHere):
        broken.run(TrainingBudget(tokens=TOKENS), stop_at_five)
    resumed = Trainer(RECIPE, data, words, tmp_path / "broken", n_workers=2)
    assert resumed.state.step == 5
    end = resumed.run(TrainingBudget(tokens=TOKENS))
    assert (end.step, end.tokens, end.phase, end.windows) == (
        whole.state.step,
        TOKENS,
        1,
        whole.state.windows,
    )
    a, b = load_model(tmp_path / "whole/final.pt"), load_model(tmp_path / "broken/final.pt")
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(x, y)


def test_training_lowers_the_loss(tmp_path: Path, data: corpus.Corpus, words: Tokenizer) -> None:
    recipe = Recipe("tiny", TINY, (Phase(1.0, 64, 8, 4),), warmup_steps=5, other_lr=1e-2)
    trainer = Trainer(recipe, data, words, tmp_path)
    before = trainer.validate()
    trainer.run(TrainingBudget(tokens=512 * 50))
    assert trainer.state.validation is not None
    assert trainer.state.validation < before - 1.5
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in log] == [*range(1, 51), 50]


def test_another_recipe_does_not_continue_the_run(
    tmp_path: Path, data: corpus.Corpus, words: Tokenizer
) -> None:
    Trainer(RECIPE, data, words, tmp_path).save()
    other = dataclasses.replace(RECIPE, matrix_lr=0.5)
    with pytest.raises(InputError, match="another recipe"):
        Trainer(other, data, words, tmp_path)


def test_missing_and_damaged_models_are_explained(
    tmp_path: Path, data: corpus.Corpus, words: Tokenizer
) -> None:
    with pytest.raises(ModelError, match="Train it first"):
        load_model(tmp_path / "final.pt")
    Trainer(RECIPE, data, words, tmp_path).save()
    with pytest.raises(ModelError, match="no finished model"):
        load_model(tmp_path / "checkpoint.pt")
    whole = (tmp_path / "checkpoint.pt").read_bytes()
    (tmp_path / "checkpoint.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="cannot be read"):
        Trainer(RECIPE, data, words, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="has no limits of file sizes")
def test_a_full_disk_leaves_the_last_checkpoint_and_nothing_else(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "checkpoint.pt"
    write_torch(path, {"weights": torch.zeros(10)})
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10_000, hard))
    try:
        with pytest.raises(InputError, match="cannot be written"):
            write_torch(path, {"weights": torch.zeros(1_000_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_budget_of_minutes_follows_the_clock(
    tmp_path: Path, data: corpus.Corpus, words: Tokenizer
) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 10.0  # seconds a step
        return now

    seen: list[int] = []
    trainer = Trainer(RECIPE, data, words, tmp_path, clock=clock)
    trainer.run(TrainingBudget(minutes=1), lambda state, _progress: seen.append(state.phase))
    assert trainer.state.step == 6
    assert seen == [0, 0, 0, 1, 1, 1]


def test_with_a_teacher_its_law_is_learned(
    tmp_path: Path, data: corpus.Corpus, words: Tokenizer
) -> None:
    teacher = Trainer(RECIPE, data, words, tmp_path / "teacher")
    teacher.run(TrainingBudget(tokens=4 * TOKENS))
    same = Trainer(
        RECIPE, data, words, tmp_path / "same", start=teacher.model, teacher=teacher.model
    )
    tokens = torch.randint(0, TINY.n_vocab, (2, 33))
    rows = tokens, torch.ones(2, 32)
    assert same._loss(rows).item() == pytest.approx(0, abs=1e-5), (
        "who knows it has nothing to learn"
    )
    recipe = dataclasses.replace(RECIPE, seed=1)
    student = Trainer(recipe, data, words, tmp_path / "student", teacher=teacher.model)
    before = student._loss(rows).item()
    student.run(TrainingBudget(tokens=4 * TOKENS))
    assert student._loss(rows).item() < 0.8 * before


def test_large_recipes_fit_what_is_shipped() -> None:
    """In q8_0, 34 bytes for 32 weights, with room for the tokenizer: 20 MiB and 3 MiB."""
    for recipe, limit in ((LARGE_TARGET, 20), (LARGE_DRAFT, 3)):
        assert recipe.model.n_params * 34 / 32 + 300_000 < limit << 20
    assert set(LARGE_RECIPES) == set(RECIPES)
    torch.manual_seed(0)
    model = Llama(LARGE_DRAFT.model)
    assert sum(w.numel() for w in model.parameters()) == LARGE_DRAFT.model.n_params


def test_a_call_may_stop_before_its_budget(
    tmp_path: Path, data: corpus.Corpus, words: Tokenizer
) -> None:
    """Calls of limited time together do what one call does."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    recipe = dataclasses.replace(RECIPE, n_streams=2)
    whole = Trainer(recipe, data, words, tmp_path / "whole")
    whole.run(TrainingBudget(tokens=TOKENS))
    n_calls, saved = 0, []
    state = State()
    while not state.is_done:
        trainer = Trainer(
            recipe,
            data,
            words,
            tmp_path / "parts",
            clock=clock,
            on_save=lambda _model, state: saved.append(state.step),
        )
        state = trainer.run(TrainingBudget(tokens=TOKENS), stop_after_s=8)
        assert (tmp_path / "parts/final.pt").exists() == state.is_done
        n_calls += 1
    assert n_calls > 2
    assert saved[-1] == state.step
    a, b = load_model(tmp_path / "whole/final.pt"), load_model(tmp_path / "parts/final.pt")
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(x, y)


def test_without_a_compiler_the_model_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> object:
        raise RuntimeError("no compiler here")

    torch.manual_seed(0)
    model, batch = Llama(TINY), torch.zeros(2, 9, dtype=torch.int64)
    before = model(batch)
    monkeypatch.setattr(torch, "compile", refuse)
    assert try_to_compile(model, 2, 8) == "RuntimeError: no compiler here"

    def break_later(_function: object, **_options: object) -> object:
        return refuse

    monkeypatch.setattr(torch, "compile", break_later)
    assert try_to_compile(model, 2, 8)
    assert torch.equal(model(batch), before)
    monkeypatch.setattr(torch, "compile", lambda function, **_options: function)
    assert try_to_compile(model, 2, 8) == ""


def test_matrices_of_one_shape_may_be_updated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An accelerator does so."""
    results: list[list[torch.Tensor]] = []
    for together in (False, True):
        torch.manual_seed(0)
        model = Llama(TINY)
        muon, _ = make_optimisers(model, 0.1, 0.1)
        if together:
            monkeypatch.setattr(
                muon,
                "_batches",
                lambda weights: [
                    [w for w in weights if w.shape == shape] for shape in {w.shape for w in weights}
                ],
            )
        for _ in range(3):
            model.loss(torch.arange(20)[None]).backward()
            muon.step()
        results.append(list(model.parameters()))
    for x, y in zip(*results, strict=True):
        assert torch.allclose(x, y, atol=2e-2)
    changed = Llama(TINY).parameters()
    assert any(
        not torch.allclose(x, y, atol=2e-2) for x, y in zip(results[0], changed, strict=True)
    )


def test_schedule() -> None:
    recipe = dataclasses.replace(RECIPE, warmup_steps=4, decay_from=0.5)
    assert [recipe.lr_scale(step, 0.0) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert recipe.lr_scale(100, 0.75) == pytest.approx(0.5)
    assert recipe.lr_scale(100, 1.0) == 0.0


@pytest.mark.parametrize(
    "phases", [(), (Phase(0.5, 32, 4, 2),), (Phase(1.0, 32, 4, 2), Phase(0.5, 32, 4, 2))]
)
def test_phases_must_cover_the_run(phases: tuple[Phase, ...]) -> None:
    with pytest.raises(ValueError, match="phases"):
        Recipe("bad", TINY, phases)


def test_rows_must_fit_the_context_and_the_micro_batches() -> None:
    with pytest.raises(ValueError, match="context"):
        Recipe("bad", TINY, (Phase(1.0, 256, 4, 2),))
    with pytest.raises(ValueError, match="multiple"):
        Phase(1.0, 32, 5, 2)


def test_a_budget_is_minutes_or_tokens_or_what_is_spent_first() -> None:
    with pytest.raises(ValueError, match="minutes or in tokens"):
        TrainingBudget()
    assert TrainingBudget(minutes=2).progress(60, 10**9) == 0.5
    assert TrainingBudget(tokens=400).progress(1e9, 100) == 0.25
    both = TrainingBudget(minutes=2, tokens=400)
    assert both.progress(60, 100) == 0.5
    assert both.progress(6, 100) == 0.25
    assert both.progress(6, 400) >= 1
