"""The loss of distillation is what its definition says, gradient and all."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from codespec.training.divergence import TopDivergence, loss
from codespec.training.network import Llama
from tests.training import TINY

N, D, V, K = 7, 8, 23, 4


def by_definition(logits: Tensor, ids: Tensor, probs: Tensor, shares: Tensor) -> Tensor:
    """KL over the named tokens and one class for the rest, in float64 and without tricks."""
    law = torch.softmax(logits, -1)
    total = logits.new_zeros(())
    for i in range(len(ids)):
        p_rest, q_rest = 1 - probs[i].sum(), law[i].sum()
        for token, p in zip(ids[i].tolist(), probs[i], strict=True):
            if p > 0:
                total = total + shares[i] * p * torch.log(p / law[i, token])
                q_rest = q_rest - law[i, token]
        if p_rest > 1e-9:
            total = total + shares[i] * p_rest * torch.log(p_rest / q_rest)
    return total


def example() -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=generator, dtype=torch.float64)
    w = torch.randn(V, D, generator=generator, dtype=torch.float64)
    ids = torch.stack([torch.randperm(V, generator=generator)[:K] for _ in range(N)])
    probs = torch.rand(N, K, generator=generator, dtype=torch.float64)
    probs = probs / probs.sum(1, keepdim=True) * torch.linspace(0.2, 1.0, N)[:, None]
    # Entries that name nothing all carry id 0, which another entry may name in earnest.
    probs[2, 1:] = 0
    ids[2] = torch.tensor([5, 0, 0, 0])
    probs[3, 2:] = 0
    ids[3] = torch.tensor([0, 9, 0, 0])
    shares = torch.rand(N, generator=generator, dtype=torch.float64)
    return x, w, ids, probs, shares / shares.sum()


def test_value_and_gradient() -> None:
    x, w, ids, probs, shares = example()
    x64, w64 = x.clone().requires_grad_(), w.clone().requires_grad_()
    expected = by_definition(x64 @ w64.T, ids, probs, shares)
    expected.backward()
    x32, w32 = x.float().requires_grad_(), w.float().requires_grad_()
    value = TopDivergence.apply(x32, w32, ids, probs.float(), shares.float(), torch.float32)
    value.backward()
    assert value.item() == pytest.approx(expected.item(), rel=1e-4)
    for ours, theirs in ((x32, x64), (w32, w64)):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert torch.allclose(ours.grad.double(), theirs.grad, atol=1e-4)


def test_no_divergence_from_itself() -> None:
    x, w, ids, _, shares = example()
    law = torch.softmax(x @ w.T, -1)
    ids = law.topk(K).indices
    probs = law.gather(1, ids)
    x32 = x.float().requires_grad_()
    value = TopDivergence.apply(x32, w.float(), ids, probs.float(), shares.float(), torch.float32)
    value.backward()
    assert abs(value.item()) < 1e-5
    assert x32.grad is not None
    assert x32.grad.abs().max() < 1e-4


def test_one_certain_token_is_cross_entropy() -> None:
    torch.manual_seed(0)
    model = Llama(TINY)
    tokens = torch.randint(0, TINY.n_vocab, (2, 33))
    ids, probs = tokens[:, 1:, None], torch.ones(2, 32, 1)
    ours = loss(model, tokens[:, :-1], ids, probs, torch.ones(2, 32))
    assert ours.item() == pytest.approx(model.loss(tokens).item(), rel=1e-4)


def test_positions_of_weight_zero_do_not_count() -> None:
    torch.manual_seed(0)
    model = Llama(TINY)
    tokens = torch.randint(0, TINY.n_vocab, (2, 20))
    ids, probs = torch.randint(0, TINY.n_vocab, (2, 20, 1)), torch.full((2, 20, 1), 0.7)
    weights = torch.ones(2, 20)
    weights[:, 12:] = 0
    ours = loss(model, tokens, ids, probs, weights)
    cut = loss(model, tokens[:, :12], ids[:, :12], probs[:, :12], weights[:, :12])
    assert ours.item() == pytest.approx(cut.item(), rel=1e-5)
