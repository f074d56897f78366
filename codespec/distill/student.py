"""Training a draft model on lessons: resumable at any checkpoint, on CPU or CUDA."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from codespec.distill.lessons import SHAPES, LessonBatch, Lessons, batch
from codespec.distill.plan import CHECKPOINT_SECONDS
from codespec.distill.vocabulary import DraftVocabulary
from codespec.errors import ModelError
from codespec.training import divergence
from codespec.training.budget import TrainingBudget
from codespec.training.network import Llama
from codespec.training.optim import SMALL_MATRIX_LR, SMALL_OTHER_LR, make_optimisers, set_lr
from codespec.training.parallel import GradientPool
from codespec.training.torch_files import read_torch, write_torch

WARMUP_STEPS = 20
# At the rates of a new model, this one forgets what it knows of code before it has learned what a
# few lessons say.
GO_ON_SHARE = 0.1
MATRIX_LR, OTHER_LR = SMALL_MATRIX_LR * GO_ON_SHARE, SMALL_OTHER_LR * GO_ON_SHARE


@dataclass(slots=True)
class TrainingProgress:
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    loss: float = 0.0


class Student:
    """A draft model in training.

    start: what it is before it learns anything.
    path:  its checkpoint, read if it is there.

    Raises: ModelError where that cannot be read, or is of another shape.
    """

    def __init__(
        self,
        vocabulary: DraftVocabulary,
        start: Llama,
        path: Path,
        *,
        device: str = "cpu",
        n_threads: int = 1,
        seed: int = 0,
    ) -> None:
        if device == "cpu":
            torch.set_num_threads(1)  # the pool is the parallelism
        self._vocabulary, self._path, self._seed = vocabulary, path, seed
        self._device, self._n_threads = torch.device(device), n_threads
        self.model = start.to(self._device)
        self._muon, self._adamw = make_optimisers(self.model, MATRIX_LR, OTHER_LR)
        self.progress = TrainingProgress()
        if path.exists():
            self._restore()

    def run(
        self,
        lessons: Lessons,
        budget: TrainingBudget,
        on_step: Callable[[TrainingProgress, float], bool],
        *,
        from_text: bool = False,
        checkpoint_s: float = CHECKPOINT_SECONDS,
    ) -> None:
        """Trains until the budget is spent or on_step(progress, share of the budget) is true. The
        checkpoint is written then, too.
        """
        by_shape = [[t for which, t in lessons.taught if which == i] for i in range(len(SHAPES))]
        shapes = [i for i, taught in enumerate(by_shape) if taught]
        state, started = self.progress, time.monotonic() - self.progress.seconds
        saved = state.seconds
        with GradientPool(self.model, self._n_threads) as pool:
            self._muon.mapper = pool.map
            while (share := budget.progress(state.seconds, state.tokens)) < 1:
                which = shapes[state.step % len(shapes)]
                # A list of its own for each step, so that a resumed run repeats an unbroken one.
                rng = random.Random(f"{self._seed}:{state.step}")
                taught = by_shape[which]
                chosen = [rng.choice(taught) for _ in range(SHAPES[which].n_rows)]
                rows = batch(chosen, self._vocabulary, from_text=from_text)
                self._step(pool, rows, SHAPES[which].n_micro_rows, share)
                state.seconds = time.monotonic() - started
                if state.seconds - saved > checkpoint_s:
                    saved = state.seconds
                    self.save()
                if on_step(state, min(1.0, budget.progress(state.seconds, state.tokens))):
                    break
        self.save()

    def _step(self, pool: GradientPool, rows: LessonBatch, n_micro_rows: int, share: float) -> None:
        state = self.progress
        loss = pool.backward(
            rows.to(self._device).split(n_micro_rows),
            lambda b: divergence.loss(self.model, b.tokens, b.ids, b.probs, b.weights),
        )
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        scale = min(1.0, (state.step + 1) / WARMUP_STEPS) * (1.0 - share)
        set_lr(self._muon, MATRIX_LR * scale)
        set_lr(self._adamw, OTHER_LR * scale)
        for optimiser in (self._muon, self._adamw):
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        state.step += 1
        state.tokens += rows.tokens.numel()
        state.loss = loss if state.step == 1 else 0.95 * state.loss + 0.05 * loss

    def save(self) -> None:
        content = {
            "progress": asdict(self.progress),
            "model": self.model.state_dict(),
            "muon": self._muon.state_dict(),
            "adamw": self._adamw.state_dict(),
        }
        write_torch(self._path, content)

    def _restore(self) -> None:
        content = read_torch(self._path, self._device)
        try:
            self.progress = TrainingProgress(**content["progress"])
            self.model.load_state_dict(content["model"])
            self._muon.load_state_dict(content["muon"])
            self._adamw.load_state_dict(content["adamw"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ModelError(f"{self._path} is of another model: {error}") from error
