"""Parts of models: tensors by their GGUF names, as (rows, columns), and the keys that say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Shapes: TypeAlias = dict[str, tuple[int, ...]]
Keys: TypeAlias = dict[str, object]

WIDTH = 128
N_FF = 128
N_HEADS, N_KV_HEADS, HEAD = 4, 2, 32  # quantised caches have blocks of 32
N_EXPERTS, N_USED, N_FF_EXPERT = 8, 2, 64
WINDOW = 32
"""Tokens in the window of sliding attention: fewer than in any test's prompt."""

CONV, INNER, STATE = 4, 256, 16
"""Widths of state-space layers: convolution, inner channels, states of a channel."""
N_SSM_HEADS, N_GROUPS, DT_RANK = 4, 2, 8


TOP: Shapes = {"output_norm.weight": (WIDTH,), "output.weight": (-1, WIDTH)}


@dataclass(frozen=True)
class Animal:
    """An architecture. keys: what its file says, each with the architecture's name in front.

    layers: tensors of each. top: those of no layer, but the embedding; shapes of (-1, n): one row
    for each token. loudness: of the embedding. Where it is too much, the next token is a matter of
    the last alone. own: one more layer, which drafts for the others.
    """

    keys: Keys
    layers: list[Shapes]
    top: Shapes = field(default_factory=lambda: TOP)
    loudness: float = 0.5
    own: Shapes = field(default_factory=dict[str, tuple[int, ...]])


def matrix(name: str, rows: int, columns: int, *, bias: bool = False) -> Shapes:
    biased: Shapes = {f"{name}.bias": (rows,)} if bias else {}
    return {f"{name}.weight": (rows, columns), **biased}


def norm(*names: str, n: int = WIDTH, bias: bool = False) -> Shapes:
    return {f"{name}.{part}": (n,) for name in names for part in ("weight", *["bias"] * bias)}


def attention(
    *, gate: int = 1, n_kv: int = N_KV_HEADS, head: int = HEAD, bias: bool = False
) -> Shapes:
    """gate: 2 where queries come with a gate each."""
    n_query = N_HEADS * head
    return {
        **matrix("attn_q", gate * n_query, WIDTH, bias=bias),
        **matrix("attn_k", n_kv * head, WIDTH, bias=bias),
        **matrix("attn_v", n_kv * head, WIDTH, bias=bias),
        **matrix("attn_output", WIDTH, n_query, bias=bias),
    }


def fused_attention(*, n_kv: int = N_KV_HEADS, bias: bool = False) -> Shapes:
    return {
        **matrix("attn_qkv", (N_HEADS + 2 * n_kv) * HEAD, WIDTH, bias=bias),
        **matrix("attn_output", WIDTH, N_HEADS * HEAD, bias=bias),
    }


def feed_forward(
    *, n: int = N_FF, gate: bool = True, bias: bool = False, suffix: str = ""
) -> Shapes:
    return {
        **(matrix(f"ffn_gate{suffix}", n, WIDTH, bias=bias) if gate else {}),
        **matrix(f"ffn_up{suffix}", n, WIDTH, bias=bias),
        **matrix(f"ffn_down{suffix}", WIDTH, n, bias=bias),
    }


def experts(n: int = N_FF_EXPERT, *, shared: bool = False, scores: bool = False) -> Shapes:
    """shared: with an expert that all tokens go through. scores: with a bias of the choice."""
    return {
        **matrix("ffn_gate_inp", N_EXPERTS, WIDTH),
        "ffn_gate_exps.weight": (N_EXPERTS, n, WIDTH),
        "ffn_up_exps.weight": (N_EXPERTS, n, WIDTH),
        "ffn_down_exps.weight": (N_EXPERTS, WIDTH, n),
        **({"exp_probs_b.bias": (N_EXPERTS,)} if scores else {}),
        **(feed_forward(n=n, suffix="_shexp") if shared else {}),
    }


def mamba2() -> Shapes:
    n_mixed = INNER + 2 * N_GROUPS * STATE
    return {
        **matrix("ssm_in", INNER + n_mixed + N_SSM_HEADS, WIDTH),
        **matrix("ssm_conv1d", n_mixed, CONV),
        "ssm_conv1d.bias": (n_mixed,),
        "ssm_dt.bias": (N_SSM_HEADS,),
        "ssm_a": (N_SSM_HEADS, 1),
        "ssm_d": (N_SSM_HEADS, 1),
        "ssm_norm.weight": (N_GROUPS, INNER // N_GROUPS),
        **matrix("ssm_out", WIDTH, INNER),
    }


def mamba(*, norms: bool = False) -> Shapes:
    return {
        **matrix("ssm_in", 2 * INNER, WIDTH),
        **matrix("ssm_conv1d", INNER, CONV, bias=True),
        **matrix("ssm_x", DT_RANK + 2 * STATE, INNER),
        **matrix("ssm_dt", INNER, DT_RANK, bias=True),
        **(norm("ssm_dt_norm", n=DT_RANK) if norms else {}),
        **(norm("ssm_b_norm", "ssm_c_norm", n=STATE) if norms else {}),
        "ssm_a": (INNER, STATE),
        "ssm_d": (INNER,),
        **matrix("ssm_out", WIDTH, INNER),
    }


def predicting(*parts: Shapes) -> Shapes:
    """A layer that predicts the token after next."""
    return {
        **{name: shape for part in parts for name, shape in part.items()},
        **matrix("nextn.eh_proj", WIDTH, 2 * WIDTH),
        **norm("nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"),
    }


N_CTX = 4096

RMS: Keys = {"attention.layer_norm_rms_epsilon": 1e-5}
LAYER_NORM: Keys = {"attention.layer_norm_epsilon": 1e-5}
HEADS: Keys = {"attention.head_count": N_HEADS, "attention.head_count_kv": N_KV_HEADS}
ROUTED: Keys = {"expert_count": N_EXPERTS, "expert_used_count": N_USED}
EXPERTS: Keys = {**ROUTED, "expert_feed_forward_length": N_FF_EXPERT}
SSM: Keys = {
    "ssm.conv_kernel": CONV,
    "ssm.inner_size": INNER,
    "ssm.state_size": STATE,
    "ssm.time_step_rank": N_SSM_HEADS,
    "ssm.group_count": N_GROUPS,
}
