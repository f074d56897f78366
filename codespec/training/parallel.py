"""How a step is spread over the hardware: its arithmetic, its memory, and the gradients of
micro-batches on several CPU threads, each running whole micro-batches with one-threaded operators.

Splitting every operator over the cores meets at a barrier thousands of times a step, and one busy
neighbour makes all of them wait. Whole micro-batches taken from a queue meet once a step: a slow
core does fewer of them. The sum is taken in the order of the micro-batches, so the result does not
depend on who computed what.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from codespec.training.network import Llama

Batch = TypeVar("Batch")
Result = TypeVar("Result")

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # options of mallopt(3), bytes
ENOUGH_S = 0.2  # of trying one type


@cache
def arithmetic(device: torch.device) -> torch.dtype:
    """The type that products are made in on this device: bfloat16, or float32 where it is quicker.

    Tried once on a CPU, in some 20 ms: that it has bf16 products does not make them the quicker
    ones (73 against 125 GFLOP/s on one core of a Xeon without matrix tiles).
    """
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    matrix = torch.ones(512, 512, device=device)
    return min((torch.bfloat16, torch.float32), key=lambda dtype: _product_s(matrix.to(dtype)))


def _product_s(matrix: Tensor) -> float:
    """Seconds of the quickest of some products of a square matrix with itself."""
    times: list[float] = []
    # A CPU without bf16 takes half a second for one (Zen 3), and once is enough to see that.
    while len(times) < 6 and sum(times) < ENOUGH_S:
        started = time.perf_counter()
        torch.mm(matrix, matrix)
        times.append(time.perf_counter() - started)
    return min(times)


def precision(device: torch.device) -> AbstractContextManager[Any]:
    """The device's `arithmetic`, with float32 where a sum needs it."""
    dtype = arithmetic(device)
    return torch.autocast(device.type, torch.bfloat16, enabled=dtype == torch.bfloat16)


def keep_freed_memory() -> None:
    """Tells glibc, where that is the C library, not to give freed memory back.

    A step allocates the same tensors of megabytes as the one before; taking them from the kernel
    anew, page by page, zeroed, was a third of its time.
    """
    if sys.platform != "win32":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(M_MMAP_THRESHOLD, 1 << 30)
            mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def try_to_compile(model: Llama, n_rows: int, n_tokens: int) -> str:
    """Compiles the model's blocks, tried on a batch of this shape; "" or why they stay as they are.

    Block by block, because equal blocks are compiled once, and ten seconds a shape are less than
    what they save from some hundred steps on. A shape that was seen before costs nothing.
    """
    device = model.device
    try:
        for block in model.blocks:
            if "forward" not in vars(block):
                vars(block)["forward"] = torch.compile(block.forward, dynamic=False)
        with precision(device):
            batch = torch.zeros(n_rows, n_tokens + 1, dtype=torch.int64, device=device)
            torch.autograd.grad(model.loss(batch), list(model.parameters()))
    except Exception as error:  # whatever compilers raise: it is slower without, not wrong
        for block in model.blocks:
            vars(block).pop("forward", None)  # the class has its own
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


class GradientPool:
    """n_workers threads that compute loss and gradients of one model. Close it, or use it as a
    context manager.
    """

    def __init__(self, model: Llama, n_workers: int) -> None:
        self._model = model
        self._weights = list(model.parameters())
        self._device = self._weights[0].device
        # An accelerator takes its work from one thread, and the compiler wants the main one.
        self._executor: ThreadPoolExecutor | None = None
        if self._device.type == "cpu":
            keep_freed_memory()
            self._executor = ThreadPoolExecutor(n_workers, initializer=self._start_thread)

    def _start_thread(self) -> None:
        # torch keeps the number of operator threads per calling thread
        torch.set_num_threads(1)

    def map(self, function: Callable[[Any], Result], items: Iterable[Any]) -> Iterator[Result]:
        """Applies function to the items, on the pool's threads where there are any."""
        return (self._executor.map if self._executor else map)(function, items)

    def backward(self, micro_batches: Sequence[Batch], loss: Callable[[Batch], Tensor]) -> float:
        """Sets .grad of every weight to the mean over the micro-batches; returns the mean loss.

        loss: a scalar from one micro-batch, called on the pool's threads under autocast.
        """
        n = len(micro_batches)
        total = torch.zeros((), device=self._device)
        for weight in self._weights:
            weight.grad = None
        for value, gradients in self.map(partial(self._one, loss), micro_batches):
            total += value
            for weight, gradient in zip(self._weights, gradients, strict=True):
                if weight.grad is None:
                    weight.grad = gradient.div_(n)
                else:
                    weight.grad.add_(gradient, alpha=1 / n)
        return total.item() / n

    def _one(
        self, loss: Callable[[Batch], Tensor], micro_batch: Batch
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        with precision(self._device):
            value = loss(micro_batch)
        return value.detach(), torch.autograd.grad(value, self._weights)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def __enter__(self) -> GradientPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
