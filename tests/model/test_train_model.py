"""The torch model against plain formulations of the same mathematics."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from codespec.train.recipe import RECIPES
from codespec.training import parallel
from codespec.training.network import (
    LinearCrossEntropy,
    Llama,
    ModelConfig,
    causal_attention,
    likeliest,
    rope_table,
    rotate,
)
from codespec.training.optim import Muon, make_optimisers, orthogonalise
from codespec.training.parallel import GradientPool, precision
from tests.training import TINY


def fresh_model() -> Llama:
    """A model whose blocks are not the identity they start as."""
    torch.manual_seed(0)
    model = Llama(TINY)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model


def tokens(n_rows: int, n_time: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, TINY.n_vocab, (n_rows, n_time), generator=generator)


def test_parameters_are_counted_right() -> None:
    for config in (TINY, *(recipe.model for recipe in RECIPES.values())):
        assert config.n_params == sum(p.numel() for p in Llama(config).parameters())


def test_the_bundled_draft_is_about_a_tenth_of_the_target() -> None:
    target, draft = (recipe.model.n_params for recipe in RECIPES.values())
    assert 8 < target / draft < 12


@pytest.mark.parametrize(
    "change", [{"n_heads": 3}, {"n_embd": 40}, {"n_ff": 100}, {"head_dim": 15, "n_kv_heads": 2}]
)
def test_impossible_shapes_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="multiple"):
        ModelConfig(**change)


@pytest.mark.parametrize("n_time", [1, 7, 256, 300])
def test_blocked_attention_is_causal_attention(n_time: int) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, n_time, 8), *torch.randn(2, 2, 2, n_time, 8)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(causal_attention(q, k, v), expected)


def test_rotation_turns_adjacent_pairs_by_position() -> None:
    table = rope_table(TINY)
    x = torch.zeros(1, 1, 4, TINY.head_dim)
    x[..., 2] = 1.0  # the second pair turns by theta ** (-2 / head_dim) a position
    turned = rotate(x, table[:4])[0, 0]
    angle = torch.arange(4) * TINY.rope_theta ** (-2 / TINY.head_dim)
    torch.testing.assert_close(turned[:, 2], angle.cos())
    torch.testing.assert_close(turned[:, 3], angle.sin())
    assert not turned[:, [0, 1, 4, 5]].any()


def test_a_later_token_changes_no_earlier_logits() -> None:
    model = fresh_model()
    a = tokens(1, 20)
    b = a.clone()
    b[0, 15] = (b[0, 15] + 1) % TINY.n_vocab
    with torch.no_grad():
        x, y = model(a)[0], model(b)[0]
    torch.testing.assert_close(x[:15], y[:15])
    assert (x[15:] - y[15:]).abs().max() > 1e-3


def test_decoding_with_caches_equals_one_pass() -> None:
    model = fresh_model()
    ids = tokens(1, 40)
    caches = model.new_caches()
    with torch.no_grad():
        parts = [
            model(part, caches) for part in (ids[:, :25], ids[:, 25:33], ids[:, 33:34], ids[:, 34:])
        ]
        torch.testing.assert_close(torch.cat(parts, 1), model(ids), atol=1e-5, rtol=1e-5)


def test_the_fused_loss_has_the_value_and_gradients_of_the_plain_one() -> None:
    torch.manual_seed(0)
    states = torch.randn(1100, 16, requires_grad=True)
    weight = torch.randn(50, 16, requires_grad=True)
    targets = torch.randint(0, 50, (1100,))
    plain = F.cross_entropy(states @ weight.T, targets)
    expected = torch.autograd.grad(plain, (states, weight))
    fused = LinearCrossEntropy.apply(
        states, weight, targets, torch.full((1100,), 1 / 1100), torch.float32
    )
    torch.testing.assert_close(fused, plain)
    for got, want in zip(torch.autograd.grad(3 * fused, (states, weight)), expected, strict=True):
        torch.testing.assert_close(got, 3 * want)


def test_model_loss_is_the_mean_over_all_positions() -> None:
    model = fresh_model()
    ids = tokens(3, 33)
    expected = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    torch.testing.assert_close(model.loss(ids), expected)


def test_the_likeliest_tokens_are_those_of_the_law() -> None:
    torch.manual_seed(0)
    model = Llama(TINY)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    tokens = torch.randint(0, TINY.n_vocab, (3, 20))
    ids, probs = likeliest(model, tokens, 5)
    law = model(tokens).softmax(-1)
    assert torch.allclose(law.gather(-1, ids), probs, atol=1e-6)
    assert torch.allclose(law.topk(5).values, probs, atol=1e-6)


def test_weights_scale_the_positions_of_the_loss() -> None:
    model = fresh_model()
    ids = tokens(2, 9)
    weights = torch.zeros(2, 8)
    weights[1, 3:5] = 2.0
    expected = F.cross_entropy(model(ids[1:, :-1])[0, 3:5], ids[1, 4:6])
    torch.testing.assert_close(model.loss(ids, weights), expected)


@pytest.mark.parametrize("shape", [(64, 64), (32, 96), (96, 32)])
def test_orthogonalised_updates_have_even_singular_values(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    singular = torch.linalg.svdvals(orthogonalise(torch.randn(shape)))
    assert singular.max() < 1.3
    assert singular.median() > 0.6


def test_muon_takes_the_matrices_of_the_blocks_and_adamw_the_rest() -> None:
    model = Llama(TINY)
    muon, adamw = make_optimisers(model, 0.02, 1e-3)
    matrices = muon.param_groups[0]["params"]
    rest = adamw.param_groups[0]["params"]
    assert len(matrices) == 7 * TINY.n_layers
    assert all(m.dim() == 2 for m in matrices)
    assert any(p is model.embedding.weight for p in rest)
    assert len(matrices) + len(rest) == len(list(model.parameters()))


def test_muon_descends() -> None:
    torch.manual_seed(0)
    goal = torch.randn(16, 16)
    weight = torch.nn.Parameter(torch.zeros(16, 16))
    muon = Muon([weight], lr=0.1, weight_decay=0.0)
    losses: list[float] = []
    for _ in range(60):
        loss = (weight - goal).square().sum()
        loss.backward()
        muon.step()
        muon.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("n_workers", [1, 3])
def test_pooled_gradients_are_those_of_the_whole_batch(n_workers: int) -> None:
    model = fresh_model()
    batch = tokens(6, 21)
    with precision(model.device):
        whole = model.loss(batch)
    expected = torch.autograd.grad(whole, list(model.parameters()))
    with GradientPool(model, n_workers) as pool:
        loss = pool.backward(batch.split(2), model.loss)
    assert loss == pytest.approx(whole.item(), rel=1e-2)
    for weight, want in zip(model.parameters(), expected, strict=True):
        assert weight.grad is not None
        # bf16 arithmetic: the parts round differently from the whole.
        assert (weight.grad - want).norm() < 0.05 * want.norm()


def test_a_type_that_is_slow_here_is_not_tried_six_times(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 0.01, 0.02, 0.03, 1.0, 1.5, *range(2, 20)])
    monkeypatch.setattr(parallel.time, "perf_counter", lambda: float(next(ticks)))
    assert parallel._product_s(torch.ones(2, 2)) == pytest.approx(0.01)
    assert next(ticks) == 2, "the third took half a second and was the last"


@pytest.mark.parametrize("quicker", [torch.bfloat16, torch.float32])
def test_products_are_made_in_the_type_that_is_quicker_here(
    quicker: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_product_s", lambda matrix: float(matrix.dtype != quicker))
    parallel.arithmetic.cache_clear()
    try:
        assert parallel.arithmetic(torch.device("cpu")) == quicker
        with precision(torch.device("cpu")):
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == quicker
        assert orthogonalise(torch.randn(8, 4)).dtype == torch.float32
    finally:
        parallel.arithmetic.cache_clear()
