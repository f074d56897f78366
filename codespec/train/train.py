"""The training loop: one process, CPU or CUDA, resumable at any checkpoint.

The budget is minutes or tokens; progress through it, 0 to 1, drives the schedule and the batch
shapes. With a budget of tokens a run is a function of recipe, corpus and seed, and a resumed run
repeats an unbroken one; with minutes the same holds but for the clock.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from codespec.errors import InputError, ModelError
from codespec.train.corpus import Corpus
from codespec.train.data import Rows
from codespec.train.feed import Feed, Position, processes
from codespec.train.recipe import Phase, Recipe
from codespec.training import divergence
from codespec.training.budget import TrainingBudget
from codespec.training.network import Llama, ModelConfig, likeliest
from codespec.training.optim import make_optimisers, set_lr
from codespec.training.parallel import GradientPool, precision, try_to_compile
from codespec.training.torch_files import read_torch, write_torch

CHECKPOINT_SECONDS = 120.0
VALIDATION_SECONDS = 300.0
VALIDATION_ROWS, VALIDATION_TOKENS = 16, 512


@dataclass(slots=True)
class State:
    """Progress of a run; all of it goes into the checkpoint."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    phase: int = 0
    turn: int = 0
    windows: list[int] = field(default_factory=lambda: [0])
    loss: float = 0.0
    validation: float | None = None
    is_done: bool = False


class Trainer:
    """One run. folder receives checkpoint.pt (to resume), log.jsonl and, at the end, final.pt
    (weights alone).
    """

    def __init__(
        self,
        recipe: Recipe,
        corpus: Corpus,
        tokenizer: Tokenizer,
        folder: Path,
        device: str = "cpu",
        n_workers: int = 2,
        clock: Callable[[], float] = time.monotonic,
        start: Llama | None = None,
        on_save: Callable[[Llama, State], None] = lambda _model, _state: None,
        teacher: Llama | None = None,
    ) -> None:
        """start: the weights to begin with, of the recipe's shape; None: random ones. n_workers:
        threads on a CPU; elsewhere processes that make batches. on_save: called after each
        checkpoint. teacher: a model of the same vocabulary, whose next-token distributions are
        learned; None: the text's tokens are.
        """
        torch.manual_seed(recipe.seed)
        if device == "cpu":
            torch.set_num_threads(1)  # the pool is the parallelism
        self.recipe, self.corpus, self.tokenizer, self.folder = recipe, corpus, tokenizer, folder
        self.device = torch.device(device)
        self.state = State(windows=[0] * recipe.n_streams)
        self.model = Llama(recipe.model)
        if start is not None:
            try:
                self.model.load_state_dict(start.state_dict())
            except RuntimeError:
                raise InputError(
                    "the weights to start from are of another shape than the recipe's",
                    "Give a model that this recipe made.",
                ) from None
        self.model.to(self.device)
        self.teacher = None if teacher is None else teacher.to(self.device).eval()
        self.muon, self.adamw = make_optimisers(self.model, recipe.matrix_lr, recipe.other_lr)
        self._n_workers, self._compiles = n_workers, True
        self._clock, self._on_save = clock, on_save
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "checkpoint.pt").exists():
            self._restore(read_torch(folder / "checkpoint.pt", self.device))

    def run(
        self,
        budget: TrainingBudget,
        on_step: Callable[[State, float], None] = lambda _state, _progress: None,
        stop_after_s: float | None = None,
    ) -> State:
        """Trains until the budget is spent; on_step gets state and progress after every step.

        stop_after_s: longest duration of this call; another one spends the rest of the budget.
        """
        stop_at = None if stop_after_s is None else self._clock() + stop_after_s
        with ExitStack() as closing_all:
            pool = closing_all.enter_context(GradientPool(self.model, self._n_workers))
            self.muon.mapper = pool.map
            makers = None
            if self.device.type != "cpu":  # which has nothing better to do than to wait
                makers = processes(self._n_workers, self.corpus, self.tokenizer)
                closing_all.callback(makers.shutdown, wait=False, cancel_futures=True)
            is_done = self._run(budget, pool, makers, on_step, stop_at)
        self.state.validation = self.validate()
        self.state.is_done = is_done
        self._log()
        self.save()
        if is_done:
            weights = {
                "config": asdict(self.recipe.model),
                "weights": self.model.state_dict(),
                "state": asdict(self.state),
            }
            write_torch(self.folder / "final.pt", weights)
        return self.state

    def _run(
        self,
        budget: TrainingBudget,
        pool: GradientPool,
        makers: ProcessPoolExecutor | None,
        on_step: Callable[[State, float], None],
        stop_at: float | None,
    ) -> bool:
        """True once the budget is spent, False where time to stop came first."""
        state, started = self.state, self._clock() - self.state.seconds
        saved = validated = state.seconds
        progress = budget.progress(state.seconds, state.tokens)
        while progress < 1:
            phase = self.recipe.phase_at(progress)
            if phase != state.phase:
                state.phase, state.turn, state.windows = phase, 0, [0] * self.recipe.n_streams
            position = Position(state.windows, state.turn)
            shape, seed = self.recipe.phases[phase], self.recipe.seed + 1000 * phase
            feed = Feed(self.corpus, self.tokenizer, shape, seed, position, makers, self.device)
            self._compile(shape)
            with closing(feed):
                while progress < 1 and self.recipe.phase_at(progress) == phase:
                    if stop_at is not None and self._clock() >= stop_at:
                        return False
                    self._step(pool, feed, shape, self.recipe.lr_scale(state.step, progress))
                    state.turn = position.turn
                    state.seconds = self._clock() - started
                    if state.seconds - validated > VALIDATION_SECONDS:
                        validated = state.seconds
                        state.validation = self.validate()
                    self._log()
                    if state.seconds - saved > CHECKPOINT_SECONDS:
                        saved = state.seconds
                        self.save()
                    progress = budget.progress(state.seconds, state.tokens)
                    on_step(state, min(1.0, progress))
        return True

    def _compile(self, shape: Phase) -> None:
        """On CUDA; a CPU gains nothing from it."""
        if self.device.type == "cuda" and self._compiles:
            # A compiler may take longer than a call of limited time has left.
            self.save()
            why_not = try_to_compile(self.model, shape.n_micro_rows, shape.n_tokens)
            self._compiles = not why_not
            if why_not:
                logging.getLogger(__name__).warning("not compiled: %s", why_not)

    def _step(self, pool: GradientPool, feed: Feed, shape: Phase, lr_scale: float) -> None:
        recipe, state = self.recipe, self.state
        parts = [t.split(shape.n_micro_rows) for t in feed.batch()]
        micro_batches = list(zip(*parts, strict=True))
        loss = pool.backward(micro_batches, self._loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        set_lr(self.muon, recipe.matrix_lr * lr_scale, momentum=recipe.momentum(state.step))
        set_lr(self.adamw, recipe.other_lr * lr_scale)
        for optimiser in (self.muon, self.adamw):
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        state.step += 1
        state.tokens += shape.n_rows * shape.n_tokens
        state.loss = loss if state.step == 1 else 0.98 * state.loss + 0.02 * loss

    def _loss(self, rows: tuple[Tensor, Tensor]) -> Tensor:
        tokens, weights = rows
        if self.teacher is None:
            return self.model.loss(tokens, weights)
        ids, probs = likeliest(self.teacher, tokens[:, :-1])
        return divergence.loss(self.model, tokens[:, :-1], ids, probs, weights)

    @torch.no_grad()
    def validate(self) -> float:
        """Loss in nats a token on fixed rows (half of them FIM) of the validation files."""
        n_tokens = min(VALIDATION_TOKENS, self.recipe.model.n_ctx)
        rows = Rows(self.corpus, self.tokenizer, n_tokens, seed=1, split="validation")
        batch = torch.from_numpy(rows.batch(0, VALIDATION_ROWS)[0]).long().to(self.device)
        with precision(self.device):
            losses = [self.model.loss(part).item() for part in batch.split(4)]
        return sum(losses) / len(losses)

    def save(self) -> None:
        """Writes checkpoint.pt; a crash in the middle leaves the previous one."""
        content = {
            "recipe": recipe_key(self.recipe),
            "state": asdict(self.state),
            "model": self.model.state_dict(),
            "muon": self.muon.state_dict(),
            "adamw": self.adamw.state_dict(),
            "rng": torch.get_rng_state(),
        }
        write_torch(self.folder / "checkpoint.pt", content)
        self._on_save(self.model, self.state)

    def _restore(self, content: dict[str, Any]) -> None:
        if content["recipe"] != recipe_key(self.recipe):
            raise InputError(
                f"{self.folder} holds a run of another recipe", "Give another folder, or remove it."
            )
        self.state = State(**content["state"])
        self.model.load_state_dict(content["model"])
        self.muon.load_state_dict(content["muon"])
        self.adamw.load_state_dict(content["adamw"])
        torch.set_rng_state(content["rng"].cpu())

    def _log(self) -> None:
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(self.state)) + "\n")


def recipe_key(recipe: Recipe) -> str:
    """The recipe as text: two runs may continue each other only if it is equal."""
    return json.dumps(asdict(recipe), sort_keys=True)


def load_model(path: Path) -> Llama:
    """The trained model of a final.pt, on the CPU. Raises: ModelError if the file is none."""
    content = read_torch(path, torch.device("cpu"))
    if "weights" not in content:
        raise ModelError(f"{path} holds no finished model", "Train it to its end first.")
    model = Llama(ModelConfig(**content["config"]))
    model.load_state_dict(content["weights"])
    return model.eval()
