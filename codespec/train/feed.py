"""The batches of a phase, one after the other: made when they are asked for, or ahead by processes.

Cutting, parsing and tokenising run at a hundred thousand tokens a second on one core: plenty beside
a CPU that trains, a tenth of what a large GPU reads. The streams take turns, so what a batch holds
does not depend on how many processes there are.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor

from codespec.train import bpe
from codespec.train.corpus import Corpus
from codespec.train.data import Rows
from codespec.train.recipe import Phase
from codespec.training import qwen2

_Made: TypeAlias = tuple[npt.NDArray[np.int32], int]


@dataclass(slots=True)
class Position:
    """A feed's place in the corpus. windows: the next window's number in each stream; turn: the
    stream that the next batch comes from.
    """

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
        pool: ProcessPoolExecutor | None = None,
        device: torch.device | None = None,
    ) -> None:
        """pool: of `processes`; None makes each batch when it is asked for. device: of batches."""
        self._phase, self._seed, self._position, self._pool = phase, seed, position, pool
        self._device = device
        self._middle = bpe.token_id(tokenizer, qwen2.FIM_MIDDLE)
        self._end = bpe.token_id(tokenizer, qwen2.END)
        n_streams = len(position.windows)
        self._ahead: dict[int, Future[_Made]] = {}
        self._rows: Rows | None = None
        if pool is not None:
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
        tokens = torch.from_numpy(made).to(self._device).long()
        phase = self._phase
        return tokens, weights(
            tokens, self._middle, self._end, phase.context_weight, phase.end_weight
        )

    def _order(self, stream: int) -> None:
        assert self._pool is not None
        n_streams, window = len(self._position.windows), self._position.windows[stream]
        what = self._phase, self._seed, n_streams
        self._ahead[stream] = self._pool.submit(_make, what, window, stream)

    def close(self) -> None:
        for future in self._ahead.values():
            future.cancel()


def processes(n: int, corpus: Corpus, tokenizer: Tokenizer) -> ProcessPoolExecutor:
    """n processes that make batches, of any phase."""
    arguments = corpus.folder, tokenizer.to_str()
    ways = multiprocessing.get_all_start_methods()
    # One process imports, and the others are copies of it; it has never seen an accelerator.
    context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
    context.set_forkserver_preload(["__main__", __name__])  # which others do not heed
    return ProcessPoolExecutor(n, context, _start_process, arguments)


def rows_of(corpus: Corpus, tokenizer: Tokenizer, phase: Phase, seed: int, n_streams: int) -> Rows:
    return Rows(
        corpus,
        tokenizer,
        phase.n_tokens,
        seed=seed,
        fim_rate=phase.fim_rate,
        finished_rate=phase.finished_rate,
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
    place = torch.arange(batch.size(1), device=batch.device).expand_as(batch)
    no_place = place.new_full((), -1)
    last_middle = torch.where(batch == middle, place, no_place).cummax(1).values
    last_end = torch.where(batch == end, place, no_place).cummax(1).values
    counted = torch.where(batch[:, 1:] == end, end_weight, 1.0)
    return torch.where((last_middle > last_end)[:, :-1], counted, context_weight)


# In a process of the pool.

_Asked: TypeAlias = tuple[Phase, int, int]  # with the seed and the number of streams

_source: tuple[Corpus, Tokenizer] | None = None


def _start_process(folder: Path, words: str) -> None:
    global _source
    _source = Corpus(folder), Tokenizer.from_str(words)


@lru_cache(maxsize=1)
def _rows(asked: _Asked) -> Rows:
    assert _source is not None
    phase, seed, n_streams = asked
    return rows_of(*_source, phase, seed, n_streams)


def _make(asked: _Asked, window: int, stream: int) -> _Made:
    return _rows(asked).batch(window, asked[0].n_rows, stream)
