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
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from codespec.train.model import Llama

Batch = TypeVar("Batch")


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

    def backward(self, micro_batches: Sequence[Batch], loss: Callable[[Batch], Tensor]) -> float:
        """Sets .grad of every weight to the mean over the micro-batches; returns the mean loss.

        loss: a scalar from one micro-batch, called on the pool's threads under autocast.
        """
        n = len(micro_batches)
        total = 0.0
        for weight in self._weights:
            weight.grad = None
        for value, gradients in self._executor.map(partial(self._one, loss), micro_batches):
            total += value
            for weight, gradient in zip(self._weights, gradients, strict=True):
                if weight.grad is None:
                    weight.grad = gradient.div_(n)
                else:
                    weight.grad.add_(gradient, alpha=1 / n)
        return total / n

    def _one(
        self, loss: Callable[[Batch], Tensor], micro_batch: Batch
    ) -> tuple[float, tuple[Tensor, ...]]:
        with torch.autocast(self._weights[0].device.type, torch.bfloat16):
            value = loss(micro_batch)
        return value.item(), torch.autograd.grad(value, self._weights)

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)

    def __enter__(self) -> GradientPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
