"""The batches of a phase, one after the other: made when they are asked for, or ahead by processes.

Cutting, parsing and tokenising run at a hundred thousand tokens a second on one core: plenty beside
a CPU that trains, a tenth of what a large GPU reads. The streams take turns, so what a batch holds
does not depend on how many processes there are.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor

from codespec.train import tokenizer as vocabulary
from codespec.train.corpus import Corpus
from codespec.train.data import Rows
from codespec.train.recipe import Phase

_Made: TypeAlias = tuple[npt.NDArray[np.int32], int]


@dataclass(slots=True)
class Position:
    """Where a feed stands. windows: the next window's number, of each stream."""

    windows: list[int]
    turn: int = 0


class Feed:
    """Batches of one phase from a position, which it moves on. Close it."""

    def __init__(
        self,
        corpus: Corpus,
        tokenizer: Tokenizer,
        phase: Phase,
        seed: int,
        position: Position,
        n_processes: int = 0,
    ) -> None:
        """n_processes: 0 makes each batch when it is asked for."""
        self._phase, self._position = phase, position
        self._middle = vocabulary.token_id(tokenizer, vocabulary.FIM_MIDDLE)
        self._end = vocabulary.token_id(tokenizer, vocabulary.END)
        n_streams = len(position.windows)
        self._ahead: dict[int, Future[_Made]] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._rows: Rows | None = None
        if n_processes:
            self._pool = ProcessPoolExecutor(
                n_processes,
                multiprocessing.get_context("spawn"),
                _start_process,
                (corpus.folder, tokenizer.to_str(), phase, seed, n_streams),
            )
            for i in range(n_streams):
                self._order((position.turn + i) % n_streams)
        else:
            self._rows = rows_of(corpus, tokenizer, phase, seed, n_streams)

    def batch(self) -> tuple[Tensor, Tensor]:
        """Tokens (n_rows, n_tokens + 1) int64, and what each predicted token counts (n_rows,
        n_tokens) float32.
        """
        position = self._position
        stream = position.turn % len(position.windows)
        if self._rows is not None:
            window = position.windows[stream]
            made, following = self._rows.batch(window, self._phase.n_rows, stream)
        else:
            made, following = self._ahead.pop(stream).result()
        position.windows[stream] = following
        position.turn += 1
        if self._pool is not None:
            self._order(stream)
        tokens = torch.from_numpy(made).long()
        phase = self._phase
        return tokens, weights(
            tokens, self._middle, self._end, phase.context_weight, phase.end_weight
        )

    def _order(self, stream: int) -> None:
        assert self._pool is not None
        window = self._position.windows[stream]
        self._ahead[stream] = self._pool.submit(_make, window, self._phase.n_rows, stream)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def rows_of(corpus: Corpus, tokenizer: Tokenizer, phase: Phase, seed: int, n_streams: int) -> Rows:
    return Rows(
        corpus,
        tokenizer,
        phase.n_tokens,
        seed=seed,
        fim_rate=phase.fim_rate,
        repository_rate=phase.repository_rate,
        n_streams=n_streams,
    )


def weights(
    batch: Tensor, middle: int, end: int, context_weight: float, end_weight: float = 1.0
) -> Tensor:
    """How much each predicted token of a batch (rows, time + 1) counts: (rows, time) float32.

    1 from the middle token of a fill-in-the-middle sequence on, end_weight for its end token,
    context_weight elsewhere. In suffix-prefix-middle order that includes the prefix, which is text
    like any other. middle, end: ids of these tokens.
    """
    place = torch.arange(batch.size(1)).expand_as(batch)
    no_place = place.new_full((), -1)
    last_middle = torch.where(batch == middle, place, no_place).cummax(1).values
    last_end = torch.where(batch == end, place, no_place).cummax(1).values
    counted = torch.where(batch[:, 1:] == end, end_weight, 1.0)
    return torch.where((last_middle > last_end)[:, :-1], counted, context_weight)


# In a process of the pool.

_rows: Rows | None = None


def _start_process(folder: Path, words: str, phase: Phase, seed: int, n_streams: int) -> None:
    global _rows
    _rows = rows_of(Corpus(folder), Tokenizer.from_str(words), phase, seed, n_streams)


def _make(window: int, n_rows: int, stream: int) -> _Made:
    assert _rows is not None
    return _rows.batch(window, n_rows, stream)
