"""Models some of whose layers, or all, carry a state along in place of keys and values."""

from __future__ import annotations

from tests.zoo.parts import (
    CONV,
    DT_RANK,
    EXPERTS,
    HEAD,
    HEADS,
    N_FF,
    N_FF_EXPERT,
    N_GROUPS,
    N_HEADS,
    N_KV_HEADS,
    N_SSM_HEADS,
    RMS,
    ROUTED,
    SSM,
    STATE,
    WIDTH,
    Animal,
    Keys,
    Shapes,
    attention,
    experts,
    feed_forward,
    mamba,
    mamba2,
    matrix,
    norm,
    predicting,
)

# Queries and keys of the delta rule, its values, and what the convolution goes over.
_KEYS, _VALUES = N_GROUPS * STATE, N_SSM_HEADS * STATE
_MIXED = 2 * _KEYS + _VALUES

_DELTA: Keys = {
    **RMS,
    **HEADS,
    "ssm.conv_kernel": CONV,
    "ssm.inner_size": _VALUES,
    "ssm.state_size": STATE,
    "ssm.time_step_rank": N_SSM_HEADS,
    "ssm.group_count": N_GROUPS,
    "full_attention_interval": 2,
    "attention.key_length": HEAD,
    "attention.value_length": HEAD,
    "rope.dimension_count": HEAD,
}
_SECTIONS: Keys = {"rope.dimension_sections": [8, 4, 4, 0]}


def _delta(*, together: bool) -> Shapes:
    """together: as Qwen3-Next has the two gates, else apart."""
    gates = matrix("ssm_ba", 2 * N_SSM_HEADS, WIDTH)
    if not together:
        gates = {
            **matrix("ssm_beta", N_SSM_HEADS, WIDTH),
            **matrix("ssm_alpha", N_SSM_HEADS, WIDTH),
        }
    return {
        **matrix("attn_qkv", _MIXED, WIDTH),
        **matrix("attn_gate", _VALUES, WIDTH),
        **matrix("ssm_conv1d", _MIXED, CONV),
        "ssm_dt.bias": (N_SSM_HEADS,),
        "ssm_a": (N_SSM_HEADS,),
        **gates,
        **norm("ssm_norm", n=STATE),
        **matrix("ssm_out", WIDTH, _VALUES),
    }


def _qwen(rest: Shapes, keys: Keys, *, together: bool = False) -> Animal:
    norms = norm("attn_norm", "post_attention_norm")
    delta = _delta(together=together)
    full = {**attention(gate=2), **norm("attn_q_norm", "attn_k_norm", n=HEAD)}
    layers = [{**norms, **mixer, **rest} for mixer in (delta, full, delta, full)]
    return Animal({**_DELTA, **keys}, layers, own=predicting(norms, full, rest))


_QWEN_EXPERTS: Shapes = {**experts(shared=True), "ffn_gate_inp_shexp.weight": (WIDTH,)}
_QWEN_EXPERT_KEYS: Keys = {**EXPERTS, "expert_shared_feed_forward_length": N_FF_EXPERT}


def _lfm2() -> Animal:
    rest = {**norm("attn_norm", "ffn_norm"), **feed_forward()}
    convolution = {
        "shortconv.conv.weight": (WIDTH, CONV),
        **matrix("shortconv.in_proj", 3 * WIDTH, WIDTH),
        **matrix("shortconv.out_proj", WIDTH, WIDTH),
    }
    full = {**attention(), **norm("attn_q_norm", "attn_k_norm", n=HEAD)}
    keys: Keys = {
        **RMS,
        "shortconv.l_cache": CONV,
        "attention.head_count": N_HEADS,
        "attention.head_count_kv": [0, N_KV_HEADS, 0, N_KV_HEADS],
    }
    layers = [{**rest, **mixer} for mixer in (convolution, full, convolution, full)]
    return Animal(keys, layers, {**norm("token_embd_norm"), "output.weight": (-1, WIDTH)})


def _nemotron_h() -> Animal:
    """Each layer is one thing."""
    kinds = (mamba2(), feed_forward(gate=False), attention(), feed_forward(gate=False))
    keys: Keys = {
        **RMS,
        "attention.layer_norm_epsilon": 1e-5,
        **SSM,
        "feed_forward_length": [0, N_FF, 0, N_FF],
        "attention.head_count": N_HEADS,
        "attention.head_count_kv": [0, 0, N_KV_HEADS, 0],
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
    }
    return Animal(keys, [{**norm("attn_norm"), **kind} for kind in kinds])


def _granite_hybrid() -> Animal:
    rest = {**norm("attn_norm", "ffn_norm"), **experts(N_FF), **feed_forward(suffix="_shexp")}
    keys: Keys = {
        **RMS,
        **SSM,
        **ROUTED,
        "expert_shared_feed_forward_length": N_FF,
        "attention.head_count": N_HEADS,
        "attention.head_count_kv": [0, N_KV_HEADS, 0, N_KV_HEADS],
        "attention.scale": 0.25,
        "embedding_scale": 4.0,
        "residual_scale": 0.5,
        "logit_scale": 0.5,
        "rope.scaling.finetuned": False,
    }
    return Animal(keys, [{**rest, **mixer} for mixer in (mamba2(), attention()) * 2])


def _falcon_h1() -> Animal:
    """Attention and a state in each layer, side by side."""
    layer = {
        **norm("attn_norm"),
        "ffn_norm": (WIDTH,),
        **mamba2(),
        **attention(),
        **feed_forward(),
    }
    return Animal({**RMS, **HEADS, **SSM}, [layer] * 2)


def _jamba() -> Animal:
    keys: Keys = {
        **RMS,
        **ROUTED,
        **SSM,
        "ssm.time_step_rank": DT_RANK,
        "attention.head_count": N_HEADS,
        "attention.head_count_kv": [0, N_KV_HEADS, 0, N_KV_HEADS],
    }
    norms = norm("attn_norm", "ffn_norm")
    state = {**norms, **mamba(norms=True), **experts(N_FF)}
    return Animal(keys, [state, {**norms, **attention(), **feed_forward()}] * 2)


def _mamba(layer: Shapes, n_dt: int) -> Animal:
    keys: Keys = {**RMS, **SSM, "ssm.time_step_rank": n_dt, "attention.head_count": 0}
    keys["feed_forward_length"] = 0
    return Animal(keys, [{**norm("attn_norm"), **layer}] * 2)


def _rwkv7() -> Animal:
    n_low = 32
    first = {f"time_mix_{x}1.weight": (n_low, WIDTH) for x in "wavg"}
    second = {f"time_mix_{x}2.weight": (WIDTH, n_low) for x in "wavg"}
    layer: Shapes = {
        **norm("attn_norm", "attn_norm_2", "time_mix_ln", bias=True),
        **{f"time_mix_{x}0.weight": (WIDTH,) for x in "wav"},
        **first,
        **second,
        "time_mix_lerp_fused.weight": (6, 1, 1, WIDTH),
        **{f"time_mix_{x}.weight": (WIDTH,) for x in ("k_k", "k_a", "r_k")},
        **{
            f"time_mix_{x}.weight": (WIDTH, WIDTH) for x in ("key", "value", "receptance", "output")
        },
        "channel_mix_lerp_k.weight": (1, 1, WIDTH),
        **matrix("channel_mix_key", N_FF, WIDTH),
        **matrix("channel_mix_value", WIDTH, N_FF),
    }
    keys: Keys = {
        "attention.layer_norm_epsilon": 1e-5,
        "attention.head_count": 0,
        "wkv.head_size": 64,  # llama.cpp reads so many, whatever is said here
        **{
            f"attention.{x}_lora_rank": n_low
            for x in ("decay", "iclr", "value_residual_mix", "gate")
        },
    }
    top: Shapes = {
        **norm("token_embd_norm", "output_norm", bias=True),
        "output.weight": (-1, WIDTH),
    }
    return Animal(keys, [layer] * 2, top)


def _kimi_linear() -> Animal:
    n_low = n_turned = 32
    n_key, n_value, n = HEAD + n_turned, HEAD, N_HEADS * HEAD
    delta: Shapes = {
        **{f"ssm_conv1d_{x}.weight": (n, 1, CONV) for x in "qkv"},
        **attention(n_kv=N_HEADS),
        **{f"ssm_{x}_a.weight": (HEAD, WIDTH) for x in "fg"},
        **{f"ssm_{x}_b.weight": (n, HEAD) for x in "fg"},
        **matrix("ssm_beta", N_HEADS, WIDTH),
        "ssm_a": (N_HEADS, 1),
        "ssm_dt.bias": (n,),
        **norm("ssm_norm", n=HEAD),
    }
    latent: Shapes = {
        **matrix("attn_q", N_HEADS * n_key, WIDTH),
        **matrix("attn_kv_a_mqa", n_low + n_turned, WIDTH),
        **norm("attn_kv_a_norm", n=n_low),
        "attn_k_b.weight": (N_HEADS, n_low, HEAD),
        "attn_v_b.weight": (N_HEADS, n_value, n_low),
        **matrix("attn_output", WIDTH, N_HEADS * n_value),
    }
    keys: Keys = {
        **RMS,
        **EXPERTS,
        "expert_shared_count": 1,
        "expert_gating_func": 2,
        "leading_dense_block_count": 1,
        "attention.head_count": N_HEADS,
        "attention.head_count_kv": [0, 1, 0, 1],
        "attention.key_length": n_low + n_turned,
        "attention.value_length": n_low,
        "attention.key_length_mla": n_key,
        "attention.value_length_mla": n_value,
        "attention.kv_lora_rank": n_low,
        "rope.dimension_count": n_turned,
        "ssm.conv_kernel": CONV,
        "kda.head_dim": HEAD,
    }
    norms = norm("attn_norm", "ffn_norm")
    mixture = experts(shared=True, scores=True)
    layers = [{**norms, **mixer, **mixture} for mixer in (delta, latent, delta, latent)]
    layers[0] = {**norms, **delta, **feed_forward()}
    return Animal(keys, layers)


RECURRENT: dict[str, Animal] = {
    "qwen35": _qwen(feed_forward(), _SECTIONS),
    "qwen35moe": _qwen(_QWEN_EXPERTS, {**_QWEN_EXPERT_KEYS, **_SECTIONS}),
    "qwen3next": _qwen(_QWEN_EXPERTS, _QWEN_EXPERT_KEYS, together=True),
    "lfm2": _lfm2(),
    "nemotron_h": _nemotron_h(),
    "granitehybrid": _granite_hybrid(),
    "falcon-h1": _falcon_h1(),
    "jamba": _jamba(),
    "mamba": _mamba(mamba(), DT_RANK),
    "mamba2": _mamba(mamba2(), N_SSM_HEADS),
    "rwkv7": _rwkv7(),
    "kimi-linear": _kimi_linear(),
}
