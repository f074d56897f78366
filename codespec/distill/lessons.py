"""Lessons, which are what the target said, on disk and as batches.

A job's lessons lie in files of their own, written whole and never changed, so a job that is killed
loses what came after the last one.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from codespec.context.fim import n_markers
from codespec.distill.teacher import Taught, Teacher
from codespec.distill.vocabulary import DraftVocabulary
from codespec.distill.workspace import Prompts
from codespec.system.files import write_atomically

N_NEW = 64
# Serving asks for continuations; text before the cursor is plenty, so it counts less.
PROMPT_WEIGHT = 0.2
SAMPLED_RATE = 0.3
TEMPERATURE = 0.8
# What reading a file raises that was cut off or overwritten.
_DAMAGE = (EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class LessonShape:
    """Prompt and continuation of a lesson in tokens, and how many make a batch.

    Served prompts reach 1,280 tokens. Half of the work goes into short ones: their continuations
    cost the target the same, and a small model reads them four times as fast.
    """

    n_tokens: int
    n_suffix: int
    n_rows: int
    n_micro_rows: int


SHAPES = (LessonShape(256 + N_NEW, 64, 16, 4), LessonShape(1280 + N_NEW, 256, 4, 1))


def ask(
    teacher: Teacher, prompts: Prompts, seed: int, first: int, n_ctx: int
) -> Iterator[tuple[int, Taught]]:
    """(index into SHAPES, lesson) without end, from number `first` on. A lesson depends on seed and
    number alone. n_ctx: of the target, in tokens.
    """
    number = first
    while True:
        rng = np.random.default_rng((seed, number))
        # As many tokens in lessons of one shape as of the other.
        which = int(number % (1 + SHAPES[1].n_tokens // SHAPES[0].n_tokens) == 0)
        shape = SHAPES[which]
        n_prompt = max(n_markers(teacher.info) + 2, min(shape.n_tokens, n_ctx) - N_NEW - 1)
        prompt = prompts.prompt(n_prompt, min(shape.n_suffix, n_prompt // 4), rng)
        temperature = TEMPERATURE if rng.random() < SAMPLED_RATE else 0.0
        yield which, teacher.teach(prompt, N_NEW, temperature, rng)
        number += 1


class Lessons:
    """The lessons of a job: what its folder holds and what was added since.

    is_damaged: files were missing or could not be read. Lessons are numbered, so those after the
    first of these are deleted.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.taught: list[tuple[int, Taught]] = []
        self.is_damaged = False
        for path in sorted(folder.glob("*.npz")):
            if path.name == _file_name(len(self.taught)) and not self.is_damaged:
                try:
                    self.taught += _read(path)
                    continue
                except _DAMAGE:
                    pass
            self.is_damaged = True
            path.unlink()
        self._n_saved = len(self.taught)

    @property
    def n_tokens(self) -> int:
        return sum(len(t.tokens) for _, t in self.taught)

    def add(self, which: int, taught: Taught) -> None:
        self.taught.append((which, taught))

    def save(self) -> None:
        """Writes what was added since the last time; a crash leaves all of it or nothing."""
        new = self.taught[self._n_saved :]
        if not new:
            return
        content = io.BytesIO()
        np.savez(
            content,
            shape=np.array([which for which, _ in new]),
            length=np.array([len(t.tokens) for _, t in new]),
            n_prompt=np.array([t.n_prompt for _, t in new]),
            tokens=np.concatenate([t.tokens for _, t in new]),
            ids=np.concatenate([t.ids for _, t in new]),
            log_prob=np.concatenate([t.log_prob for _, t in new]),
        )
        write_atomically(self._folder / _file_name(self._n_saved), content.getvalue())
        self._n_saved = len(self.taught)

    def counts(self, n_vocab: int) -> npt.NDArray[np.float64]:
        """(n_vocab,) how often each token was read, written, or likely."""
        total = np.zeros(n_vocab)
        for _, taught in self.taught:
            total += np.bincount(taught.tokens, minlength=n_vocab)
            named = taught.ids >= 0
            probs = np.exp(taught.log_prob[named], dtype=np.float64)
            np.add.at(total, taught.ids[named], probs)
        return total


@dataclass(frozen=True, slots=True)
class LessonBatch:
    """Padded lessons: tokens (rows, time) int64; ids, probs (rows, time, k); weights (rows, time).
    Padding has weight 0.
    """

    tokens: Tensor
    ids: Tensor
    probs: Tensor
    weights: Tensor

    def split(self, n_rows: int) -> list[LessonBatch]:
        parts = (t.split(n_rows) for t in (self.tokens, self.ids, self.probs, self.weights))
        return [LessonBatch(*part) for part in zip(*parts, strict=True)]

    def to(self, device: torch.device) -> LessonBatch:
        fields = (self.tokens, self.ids, self.probs, self.weights)
        return LessonBatch(*(t.to(device) for t in fields))


def batch(
    taught: list[Taught], vocabulary: DraftVocabulary, *, from_text: bool = False
) -> LessonBatch:
    """Lessons in the draft model's ids.

    from_text: the workspace's text alone, nothing of the target: to compare with.
    """
    n, longest, k = len(taught), max(len(t.tokens) for t in taught), taught[0].ids.shape[1]
    tokens = np.zeros((n, longest), np.int64)
    ids = np.full((n, longest, k), -1, np.int64)
    probs = np.zeros((n, longest, k), np.float32)
    weights = np.zeros((n, longest), np.float32)
    for i, t in enumerate(taught):
        stop = len(t.tokens)
        tokens[i, :stop] = vocabulary.to_draft(t.tokens)
        weights[i, : t.n_prompt - 1] = PROMPT_WEIGHT
        weights[i, t.n_prompt - 1 : stop] = 1.0
        if from_text:
            ids[i, : stop - 1, 0] = tokens[i, 1:stop]
            probs[i, : stop - 1, 0] = 1.0
            weights[i, : t.n_prompt - 1] = 1.0
            weights[i, t.n_prompt - 1 :] = 0.0
        else:
            ids[i, :stop] = vocabulary.to_draft(t.ids, unknown=-1)
            probs[i, :stop] = np.exp(t.log_prob.astype(np.float32))
    probs[ids < 0] = 0.0
    ids[ids < 0] = 0
    arrays = (tokens, ids, probs, weights)
    return LessonBatch(*(torch.from_numpy(a) for a in arrays))


def _file_name(first: int) -> str:
    return f"{first:06}.npz"


def _read(path: Path) -> list[tuple[int, Taught]]:
    with np.load(path) as f:
        ends = np.cumsum(f["length"])[:-1]
        columns = [np.split(f[name], ends) for name in ("tokens", "ids", "log_prob")]
        shapes, n_prompts = f["shape"].tolist(), f["n_prompt"].tolist()
    return [
        (shape, Taught(tokens, n_prompt, ids, log_prob))
        for shape, n_prompt, tokens, ids, log_prob in zip(shapes, n_prompts, *columns, strict=True)
    ]
