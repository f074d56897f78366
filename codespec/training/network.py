"""A small Llama-architecture decoder in torch: the one shape that both training and llama.cpp
understand.

The choices follow llama.cpp's `llama` architecture to the letter (pre-norm RMSNorm, interleaved
rotary pairs, grouped-query attention, SwiGLU, tied embeddings), so that export is a renaming of
tensors and no weight is permuted.

Source: Touvron et al. 2023 (Llama), Su et al. 2021 (rotary embedding), Ainslie et al. 2023
(grouped-query attention), Shazeer 2020 (SwiGLU), Press & Wolf 2017 (tied embeddings).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Rows of the logits matrix that exist at one time in training: 512 x 8,192 float32 is 16 MiB, which
# stays in a CPU's cache; a GPU wants more work at a time.
LOSS_CHUNK, LOSS_CHUNK_GPU = 512, 8192

N_LIKELIEST = 16  # tokens of a teacher's next-token distribution; the others are one class

# Queries that attend in one product on CPU; 256 was fastest of 64, 128, 256 and 512.
QUERY_BLOCK = 256


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape of one model. Widths must be multiples of 32, the block length of q8_0."""

    n_vocab: int = 8192
    n_embd: int = 256
    n_layers: int = 6
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 64
    n_ff: int = 704
    n_ctx: int = 2048
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_heads {self.n_heads} is not a multiple of n_kv_heads {self.n_kv_heads}"
            )
        for name in ("n_embd", "n_ff"):
            if getattr(self, name) % 32:
                raise ValueError(
                    f"{name} {getattr(self, name)} is not a multiple of 32 (q8_0 block length)"
                )
        if self.n_heads * self.head_dim % 32 or self.head_dim % 2:
            raise ValueError("n_heads * head_dim must be a multiple of 32 and head_dim even")

    @property
    def n_params(self) -> int:
        """Parameters, the tied embedding counted once."""
        attn = 2 * self.n_embd * self.head_dim * (self.n_heads + self.n_kv_heads)
        per_layer = attn + 3 * self.n_embd * self.n_ff + 2 * self.n_embd
        return self.n_vocab * self.n_embd + self.n_layers * per_layer + self.n_embd


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.size(-1),), self.weight, self.eps)


def rope_table(config: ModelConfig) -> Tensor:
    """Cosine and sine of the angle of every position and pair: (n_ctx, head_dim / 2, 2) float32."""
    inverse = config.rope_theta ** (-torch.arange(0, config.head_dim, 2).double() / config.head_dim)
    angle = torch.outer(torch.arange(config.n_ctx).double(), inverse)
    return torch.stack((angle.cos(), angle.sin()), -1).float()


def rotate(x: Tensor, table: Tensor) -> Tensor:
    """Rotates the pairs (0,1), (2,3), ... of x (batch, heads, time, head_dim): llama.cpp's "normal"
    order. In real numbers, because torch's compiler does not know complex ones.
    """
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = table[: x.size(-2)].unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention: q (batch, heads, time, head_dim), k and v with n_kv_heads -> shape of q.

    k and v may be longer than q: its rows are then the last positions.

    On CPU a few plain products over blocks of queries take a third of the time of torch's fused
    kernel in bf16 (37 against 110 ms forward and backward at 16 x 512 positions), so the fused one
    serves accelerators only.
    """
    n_past = k.size(2) - q.size(2)
    if q.device.type != "cpu" and not n_past:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    n_time, group = q.size(2), q.size(1) // k.size(1)
    q = q * q.size(-1) ** -0.5
    k, v = k.repeat_interleave(group, 1).transpose(-2, -1), v.repeat_interleave(group, 1)
    future = q.new_full((QUERY_BLOCK, QUERY_BLOCK), -torch.inf).triu(1)
    blocks: list[Tensor] = []
    for start in range(0, n_time, QUERY_BLOCK):
        stop = min(start + QUERY_BLOCK, n_time)
        scores = q[:, :, start:stop] @ k[..., : n_past + stop]
        scores[..., n_past + start :] += future[: stop - start, : stop - start]
        blocks.append(torch.softmax(scores, -1) @ v[:, :, : n_past + stop])
    return torch.cat(blocks, 2)


class Cache:
    """Keys and values of one layer, of the tokens decoded so far; serves evaluation alone."""

    def __init__(self) -> None:
        self.kv: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return 0 if self.kv is None else self.kv[0].size(2)

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if self.kv is not None:
            k, v = torch.cat((self.kv[0], k), 2), torch.cat((self.kv[1], v), 2)
        self.kv = k, v
        return k, v


class Attention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        n_q, n_kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
        self.q = nn.Linear(config.n_embd, n_q, bias=False)
        self.k = nn.Linear(config.n_embd, n_kv, bias=False)
        self.v = nn.Linear(config.n_embd, n_kv, bias=False)
        self.out = nn.Linear(n_q, config.n_embd, bias=False)

    def forward(self, x: Tensor, table: Tensor, cache: Cache | None = None) -> Tensor:
        q, k, v = (
            w(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for w in (self.q, self.k, self.v)
        )
        q, k = rotate(q, table), rotate(k, table)
        if cache is not None:
            k, v = cache.extend(k, v)
        y = causal_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.n_embd, config.n_ff, bias=False)
        self.up = nn.Linear(config.n_embd, config.n_ff, bias=False)
        self.down = nn.Linear(config.n_ff, config.n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attn_norm = RMSNorm(config.n_embd, config.norm_eps)
        self.attn = Attention(config)
        self.ffn_norm = RMSNorm(config.n_embd, config.norm_eps)
        self.ffn = FeedForward(config)

    def forward(self, x: Tensor, table: Tensor, cache: Cache | None = None) -> Tensor:
        x = x + self.attn(self.attn_norm(x), table, cache)
        return x + self.ffn(self.ffn_norm(x))


class Llama(nn.Module):
    """The decoder. Weights are float32; run it under autocast for bf16 arithmetic."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.n_vocab, config.n_embd)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = RMSNorm(config.n_embd, config.norm_eps)
        self.register_buffer("table", rope_table(config), persistent=False)
        self._init_weights()

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    def _init_weights(self) -> None:
        for name, weight in self.named_parameters():
            if weight.dim() < 2:
                continue
            if name == "embedding.weight":
                nn.init.normal_(weight, std=0.02)
            elif name.endswith(("attn.out.weight", "ffn.down.weight")):
                # Each block starts as the identity: depth then costs nothing in early steps.
                nn.init.zeros_(weight)
            else:
                nn.init.normal_(weight, std=1 / math.sqrt(weight.size(1)))

    def hidden(self, tokens: Tensor, caches: list[Cache] | None = None) -> Tensor:
        """tokens (batch, time) int64 -> states after the final norm (batch, time, n_embd)."""
        n_past = len(caches[0]) if caches else 0
        n_all = n_past + tokens.size(1)
        if n_all > self.config.n_ctx:
            raise ValueError(f"{n_all} tokens are more than the context of {self.config.n_ctx}")
        table = self.table[n_past:n_all]
        x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            x = block(x, table, caches[i] if caches else None)
        return self.norm(x)

    def forward(self, tokens: Tensor, caches: list[Cache] | None = None) -> Tensor:
        """tokens (batch, time) int64 -> logits (batch, time, n_vocab).

        With caches (from `new_caches`) the tokens follow those of earlier calls. Raises:
        ValueError past n_ctx.
        """
        return F.linear(self.hidden(tokens, caches), self.embedding.weight)

    def new_caches(self) -> list[Cache]:
        return [Cache() for _ in self.blocks]

    def loss(self, tokens: Tensor, weights: Tensor | None = None) -> Tensor:
        """Mean next-token loss in nats over tokens (batch, time + 1).

        weights (batch, time), of the predicted tokens; None counts all alike, prompt and middle.
        """
        states = self.hidden(tokens[:, :-1]).flatten(0, 1)
        dtype = (
            torch.get_autocast_dtype(states.device.type) if is_autocast(states) else states.dtype
        )
        shares = states.new_ones(len(states)) if weights is None else weights.flatten().float()
        shares = shares.float() / shares.float().sum()
        targets = tokens[:, 1:].flatten()
        return LinearCrossEntropy.apply(states, self.embedding.weight, targets, shares, dtype)


@torch.no_grad()
def likeliest(model: Llama, tokens: Tensor, n: int = N_LIKELIEST) -> tuple[Tensor, Tensor]:
    """The n likeliest tokens after each of tokens (rows, time) and their probabilities: int64 and
    float32 (rows, time, n).
    """
    states = model.hidden(tokens).flatten(0, 1)
    weight = model.embedding.weight
    parts = [
        F.linear(part, weight).softmax(-1, torch.float32).topk(n)
        for part in states.split(loss_chunk(states))
    ]
    ids, probs = (torch.cat([top[i] for top in parts]).unflatten(0, tokens.shape) for i in (1, 0))
    return ids, probs


def loss_chunk(x: Tensor) -> int:
    return LOSS_CHUNK if x.device.type == "cpu" else LOSS_CHUNK_GPU


def is_autocast(x: Tensor) -> bool:
    return torch.is_autocast_enabled(x.device.type)


class LinearCrossEntropy(torch.autograd.Function):
    """Output projection and weighted cross-entropy in one, so that the logits of a batch never
    exist together.

    The gradient is taken chunk by chunk in the forward pass, while the chunk's probabilities are in
    the cache: on CPU this is a quarter of a training step saved at a vocabulary of 8,192. Source:
    Wijmans et al. 2024 (cut cross-entropy).
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        targets: Tensor,
        shares: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        """states (n, n_embd), weight (n_vocab, n_embd), targets (n,) int64, shares (n,) float32,
        what each position counts in the result -> scalar float32.
        """

        def cost(part: slice, prob: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
            target, share = targets[part, None], shares[part, None]

            def error() -> Tensor:
                prob.scatter_add_(1, target, prob.new_full(target.shape, -1.0))
                return prob.mul_(share)

            return -(prob.gather(1, target).clamp_min_(1e-37).log_() * share).sum(), error

        return fused_loss(ctx, states, weight, dtype, cost)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        grad_x, grad_w = ctx.saved_tensors
        return grad_x * grad, grad_w * grad, None, None, None


Cost: TypeAlias = Callable[[slice, Tensor], tuple[Tensor, Callable[[], Tensor]]]


def fused_loss(ctx: Any, states: Tensor, weight: Tensor, dtype: torch.dtype, cost: Cost) -> Tensor:
    """The forward pass of a loss on the next-token distributions after states (n, n_embd), chunk by
    chunk, which saves the gradients by states and weight (n_vocab, n_embd) in ctx where they are
    needed.

    cost: gives for a slice of the rows and their distributions (rows, n_vocab) float32, which it
    may overwrite, what they add to the loss, and a function for the gradient by their logits.
    """
    needs_grad = any(ctx.needs_input_grad)
    x, w = states.to(dtype), weight.to(dtype)
    grad_x = torch.empty_like(x) if needs_grad else None
    grad_w = torch.zeros_like(weight, dtype=torch.float32) if needs_grad else None
    total = torch.zeros((), dtype=torch.float32, device=x.device)
    step = loss_chunk(x)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        value, error_of = cost(part, torch.softmax(x[part] @ w.T, -1, dtype=torch.float32))
        total += value
        if grad_x is None or grad_w is None:
            continue
        error = error_of().to(dtype)
        grad_x[part] = error @ w
        grad_w += error.T @ x[part]
    if grad_x is not None and grad_w is not None:
        ctx.save_for_backward(grad_x, grad_w)
    return total
