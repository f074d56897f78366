"""Optimisers: Muon for the weight matrices, AdamW for the embedding and the norms.

Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks" (momentum,
then the nearest semi-orthogonal matrix by a quintic Newton-Schulz iteration); Loshchilov & Hutter
2019 (AdamW).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from codespec.training.parallel import arithmetic

NEWTON_SCHULZ = (
    3.4445,
    -4.7750,
    2.0315,
)  # steepest slope at zero that still maps [0, 1] near 1; Jordan et al. 2024
NEWTON_SCHULZ_STEPS = 5
SMALL_MATRIX_LR, SMALL_OTHER_LR = 0.03, 6e-3
"""Learning rates of a new draft model, of about a million parameters."""


def orthogonalise(matrix: Tensor) -> Tensor:
    """Roughly U V^T of matrix = U S V^T: (..., rows, columns) -> same shape, singular values in
    about [0.7, 1.2].

    bf16 is precise enough here, so it serves where it is quicker. Cost: 5 iterations of 3 products
    over the short side.
    """
    a, b, c = NEWTON_SCHULZ
    tall = matrix.size(-2) > matrix.size(-1)
    x = matrix.to(arithmetic(matrix.device))
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if tall else x).to(matrix.dtype)


class Muon(torch.optim.Optimizer):
    """Nesterov momentum whose update is orthogonalised, so that every direction of a matrix learns
    at the same rate.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.mapper: Callable[[Callable[[Any], None], Iterable[Any]], Iterable[None]] = map
        """Applies the update to every matrix; a thread pool's map does it on all cores."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        if closure is not None:
            raise ValueError("Muon takes no closure")
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            # The longest updates first, so that no thread is left alone with one at the end.
            batches = sorted(self._batches(weights), key=lambda b: -sum(w.numel() for w in b))
            for _ in self.mapper(partial(self._update, group), batches):
                pass

    @staticmethod
    def _batches(weights: list[Tensor]) -> list[list[Tensor]]:
        """Groups of matrices to orthogonalise at once: each alone on a CPU, where they are spread
        over threads; all of one shape on an accelerator, whose time for a small product is its
        start.
        """
        by_shape: dict[object, list[Tensor]] = {}
        for i, weight in enumerate(weights):
            on_cpu = weight.device.type == "cpu"
            by_shape.setdefault(i if on_cpu else weight.shape, []).append(weight)
        return list(by_shape.values())

    @torch.no_grad()
    def _update(self, group: dict[str, Any], weights: list[Tensor]) -> None:
        momentum = group["momentum"]
        wanted: list[Tensor] = []
        for weight in weights:
            assert weight.grad is not None
            buffer = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
            buffer.lerp_(weight.grad, 1 - momentum)
            wanted.append(torch.lerp(weight.grad, buffer, momentum))
        for weight, update in zip(weights, orthogonalise(torch.stack(wanted)), strict=True):
            weight.mul_(1 - group["lr"] * group["weight_decay"])
            # A tall matrix gets longer steps, so that the change of its output keeps its size.
            scale = max(1.0, weight.size(0) / weight.size(1)) ** 0.5
            weight.add_(update, alpha=-group["lr"] * scale)


def make_optimisers(
    model: nn.Module, matrix_lr: float, other_lr: float
) -> tuple[Muon, torch.optim.AdamW]:
    """One optimiser for the matrices inside the blocks and one for everything else."""
    matrices = [
        w for name, w in model.named_parameters() if w.dim() == 2 and name.startswith("blocks.")
    ]
    others = [
        w
        for name, w in model.named_parameters()
        if not (w.dim() == 2 and name.startswith("blocks."))
    ]
    return Muon(matrices, lr=matrix_lr), torch.optim.AdamW(
        others, lr=other_lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )


def set_lr(optimiser: Muon | torch.optim.AdamW, lr: float, **options: float) -> None:
    for group in optimiser.param_groups:
        group.update(options, lr=lr)
