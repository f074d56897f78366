"""Gradients of micro-batches on several CPU threads, each running whole micro-batches with
one-threaded operators.

Splitting every operator over the cores meets at a barrier thousands of times a step, and one busy
neighbour makes all of them wait. Whole micro-batches taken from a queue meet once a step: a slow
core does fewer of them. The sum is taken in the order of the micro-batches, so the result does not
depend on who computed what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from codespec.train.model import Llama


class GradientPool:
    """n_workers threads that compute loss and gradients of one model. Close it, or use it as a
    context manager.
    """

    def __init__(self, model: Llama, n_workers: int) -> None:
        self._model = model
        self._weights = list(model.parameters())
        self._on_cpu = self._weights[0].device.type == "cpu"
        n_threads = n_workers if self._on_cpu else 1
        self._executor = ThreadPoolExecutor(n_threads, initializer=self._start_thread)

    def _start_thread(self) -> None:
        if self._on_cpu:
            torch.set_num_threads(
                1
            )  # torch keeps the number of operator threads per calling thread

    def map(self, function: Callable[[Any], None], items: Iterable[Any]) -> Iterator[None]:
        """Applies function to the items on the pool's threads."""
        return self._executor.map(function, items)

    def backward(
        self, micro_batches: Sequence[Tensor], weights: Sequence[Tensor | None] | None = None
    ) -> float:
        """Sets .grad of every weight to the mean over the micro-batches (rows, time + 1), whose
        positions count by weights (rows, time); returns the mean loss.
        """
        n = len(micro_batches)
        total = 0.0
        for weight in self._weights:
            weight.grad = None
        for loss, gradients in self._executor.map(self._one, micro_batches, weights or [None] * n):
            total += loss
            for weight, gradient in zip(self._weights, gradients, strict=True):
                if weight.grad is None:
                    weight.grad = gradient.div_(n)
                else:
                    weight.grad.add_(gradient, alpha=1 / n)
        return total / n

    def _one(self, micro_batch: Tensor, weights: Tensor | None) -> tuple[float, tuple[Tensor, ...]]:
        with torch.autocast(micro_batch.device.type, torch.bfloat16):
            loss = self._model.loss(micro_batch, weights)
        return loss.item(), torch.autograd.grad(loss, self._weights)

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)

    def __enter__(self) -> GradientPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
