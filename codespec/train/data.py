"""Batches from the corpus: an endless, seeded stream of packed token rows whose position is one
integer.

Documents are cut into windows about as long as a row, the windows of the whole corpus are shuffled
once per epoch, and row after row is filled from them; a row depends on (seed, window number) alone,
so a checkpoint that stores the number of the next window resumes exactly. Text is tokenised on the
fly: at a few thousand tokens a second that costs less than one per cent of a training step, and it
lets every epoch cut elsewhere.
"""

from __future__ import annotations

import random
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from codespec.index.languages import language_of
from codespec.train import tokenizer as vocabulary
from codespec.train.corpus import Corpus
from codespec.train.fim import Fim
from codespec.train.packing import Packages

CHARS_PER_TOKEN = 3.4  # of this tokenizer on this corpus; only sets the size of the windows
HEADER_RATE = 0.05  # plain files that begin with the file separator, so that it means something
SHORTEST = 48  # tokens of room worth starting another window in
CONTEXT_SHARE = 0.5  # of a row, what text of other files takes at most


class Window(NamedTuple):
    """A piece of a document, and whether the document starts with it."""

    document: int
    text: str
    is_start: bool


class Windows:
    """The documents of a split cut into windows of about n_tokens, shuffled anew every epoch."""

    def __init__(self, corpus: Corpus, split: str, n_tokens: int, seed: int) -> None:
        self._corpus = corpus
        self._seed = seed
        self._size = int(n_tokens * CHARS_PER_TOKEN)
        documents = corpus.documents(split)
        if not len(documents):
            raise ValueError(
                f"the corpus has no documents in its {split} split: build it from more sources"
            )
        pieces = np.maximum(1, np.round(corpus.table[documents, 1] / self._size)).astype(np.int64)
        self._document = np.repeat(documents, pieces)
        self._piece = np.arange(len(self._document)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        self._epoch = -1
        self._order = np.arange(0)

    def __len__(self) -> int:
        return len(self._document)

    def __getitem__(self, number: int) -> Window:
        """The window with this number in the stream."""
        epoch, index = divmod(number, len(self))
        if epoch != self._epoch:
            self._order = np.random.default_rng((self._seed, epoch)).permutation(len(self))
            self._epoch = epoch
        chosen = self._order[index]
        document = int(self._document[chosen])
        text = self._corpus.text(document)
        start = int(self._piece[chosen]) * self._size
        if start:  # a prompt that is cut to length begins with a line, too
            start = text.find("\n", start) + 1 or start
        # Half a window more than the pieces are apart: rows are filled to the brim even where text
        # is dense.
        return Window(document, text[start : start + self._size * 3 // 2], start == 0)


class Rows:
    """Rows of exactly n_tokens + 1 tokens: FIM sequences and plain text, packed without padding.

    repository_rate: share of the rows that begin with text of other files of a package.
    """

    def __init__(
        self,
        corpus: Corpus,
        tokenizer: Tokenizer,
        n_tokens: int,
        *,
        seed: int,
        split: str = "train",
        fim_rate: float = 0.5,
        repository_rate: float = 0.0,
    ) -> None:
        self._windows = Windows(corpus, split, n_tokens, seed)
        self._corpus = corpus
        self._fim = Fim(tokenizer)
        self._header = vocabulary.token_id(tokenizer, vocabulary.FILE_SEPARATOR)
        repository = vocabulary.token_id(tokenizer, vocabulary.REPO_NAME)
        self._packages = Packages(
            corpus, corpus.documents(split), self._fim.encode, repository, self._header
        )
        self._repository_rate = repository_rate
        self._n_tokens = n_tokens
        self._seed = seed
        self._fim_rate = fim_rate
        self._executor = ThreadPoolExecutor(1)
        self._next: tuple[tuple[int, int], Future[tuple[Tensor, int]]] | None = None

    def weights(self, batch: Tensor, context_weight: float, end_weight: float = 1.0) -> Tensor:
        """How much each predicted token of a batch (rows, time + 1) counts: (rows, time) float32.

        1 from the middle token of a FIM sequence on, end_weight for its end token, context_weight
        elsewhere. In suffix-prefix-middle order that includes the prefix, which is text like any
        other.
        """
        place = torch.arange(batch.size(1)).expand_as(batch)
        no_place = place.new_full((), -1)
        middle = torch.where(batch == self._fim.middle, place, no_place).cummax(1).values
        end = torch.where(batch == self._fim.end, place, no_place).cummax(1).values
        counted = torch.where(batch[:, 1:] == self._fim.end, end_weight, 1.0)
        return torch.where((middle > end)[:, :-1], counted, context_weight)

    def row(self, window: int) -> tuple[list[int], int]:
        """The row that starts at this window number, and the first window number after it."""
        rng = random.Random(f"{self._seed}:{window}")
        row: list[int] = []
        n_row = self._n_tokens + 1
        while len(row) < n_row:
            room = n_row - len(row)
            document, text, is_start = self._windows[window]
            window += 1
            if not text.strip():
                continue
            if not row and rng.random() < self._repository_rate:
                row += self._packages.context(document, text, int(CONTEXT_SHARE * room), rng)
                room = n_row - len(row)
                is_start = is_start and not row
            if room >= SHORTEST and rng.random() < self._fim_rate:
                language = language_of(self._corpus.path(document))
                row += self._fim.sequence(text, rng, room, language)
                continue
            if is_start and rng.random() < HEADER_RATE:
                row.append(self._header)
            row += [*self._fim.encode(text)[:room], self._fim.end]
        return row[:n_row], window

    def ahead(self, window: int, n_rows: int) -> None:
        """Begin to make the batch that `batch` will be asked for next, on a thread of its own."""
        self._next = (window, n_rows), self._executor.submit(self._batch, window, n_rows)

    def batch(self, window: int, n_rows: int) -> tuple[Tensor, int]:
        """n_rows rows from this window number on: (n_rows, n_tokens + 1) int64, and the next window
        number.
        """
        if self._next is not None and self._next[0] == (window, n_rows):
            return self._next[1].result()
        return self._batch(window, n_rows)

    def _batch(self, window: int, n_rows: int) -> tuple[Tensor, int]:
        rows: list[list[int]] = []
        for _ in range(n_rows):
            row, window = self.row(window)
            rows.append(row)
        return torch.tensor(rows), window
