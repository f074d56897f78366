"""The loss: how far a draft model's next-token distribution is from what is known of the
target's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from codespec.training.network import Llama, fused_loss, is_autocast

_TINY = 1e-6


def loss(model: Llama, tokens: Tensor, ids: Tensor, probs: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean divergence in nats.

    tokens (rows, time) int64; ids (rows, time, k) int64 and probs (rows, time, k) float32: the
    target's distribution after each token, see `TopDivergence`; weights (rows, time), what each
    token counts.
    """
    states = model.hidden(tokens).flatten(0, 1)
    device = states.device.type
    dtype = torch.get_autocast_dtype(device) if is_autocast(states) else states.dtype
    shares = weights.flatten() / weights.sum()
    return TopDivergence.apply(
        states, model.embedding.weight, ids.flatten(0, 1), probs.flatten(0, 1), shares, dtype
    )


class TopDivergence(torch.autograd.Function):
    """KL(target || draft) over the tokens named and one class for all others together.

    The target's distribution is known by its likeliest tokens and the remainder; merging the rest
    into one class gives a lower bound of the divergence of the whole distributions, and leaves the
    draft model to spread the remainder as it likes. With one token of probability 1 it is
    cross-entropy.

    As in training from text, output projection and gradient are taken chunk by chunk in the forward
    pass, so that the logits of a batch never exist together. With q the draft's distribution, p the
    target's, and r the remainder of p over that of q, the gradient by logit j is q_j - p_j for a
    token named and q_j (1 - r) for another.

    Source: Hinton et al. 2015 (distillation); Zhou et al. 2023, "DistillSpec" (for drafting).
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        ids: Tensor,
        probs: Tensor,
        shares: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        """states (n, n_embd), weight (n_vocab, n_embd), ids (n, k) int64 without repetition but for
        entries of probability 0, probs (n, k) float32, shares (n,) float32 -> scalar float32.
        """

        def cost(part: slice, q_all: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
            p, share = probs[part], shares[part, None]
            named = p > 0
            q = q_all.gather(1, ids[part]) * named
            p_rest = (1 - p.sum(1, keepdim=True)).clamp_min(0)
            q_rest = (1 - q.sum(1, keepdim=True)).clamp_min(_TINY)
            known = torch.special.xlogy(p, p / q.clamp_min(1e-37))
            rest = torch.special.xlogy(p_rest, p_rest / q_rest)

            def error() -> Tensor:
                ratio = p_rest / q_rest
                # Entries of probability 0 may name any id, which must stay as it is: hence a sum.
                return q_all.mul_(1 - ratio).scatter_add_(1, ids[part], q * ratio - p).mul_(share)

            return ((known.sum(1, keepdim=True) + rest) * share).sum(), error

        return fused_loss(ctx, states, weight, dtype, cost)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        grad_x, grad_w = ctx.saved_tensors
        return grad_x * grad, grad_w * grad, None, None, None, None
