"""Models of attention alone, of all kinds."""

from __future__ import annotations

from tests.zoo.parts import (
    EXPERTS,
    HEAD,
    HEADS,
    LAYER_NORM,
    N_CTX,
    N_EXPERTS,
    N_FF,
    N_FF_EXPERT,
    N_HEADS,
    N_KV_HEADS,
    RMS,
    TOP,
    WIDTH,
    WINDOW,
    Animal,
    Keys,
    Shapes,
    attention,
    experts,
    feed_forward,
    fused_attention,
    matrix,
    norm,
    predicting,
)

N_LAYERS = 2

_OUTPUT: Shapes = {"output.weight": (-1, WIDTH)}
_BIASED_TOP: Shapes = {**norm("output_norm", bias=True), **_OUTPUT}
_QK_NORMS = norm("attn_q_norm", "attn_k_norm", n=HEAD)
_SANDWICH = norm("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
_SLIDING: Keys = {"attention.sliding_window": WINDOW}
_HEAD: Keys = {"attention.key_length": HEAD, "attention.value_length": HEAD}


def _alike(layer: Shapes, keys: Keys, top: Shapes = TOP, loudness: float = 0.5) -> Animal:
    return Animal(keys, [layer] * N_LAYERS, top, loudness)


def _gpt_oss() -> Animal:
    n_rows = {"gate": N_FF_EXPERT, "up": N_FF_EXPERT, "down": WIDTH}
    layer: Shapes = {
        **norm("attn_norm", "post_attention_norm"),
        **attention(bias=True),
        "attn_sinks.weight": (N_HEADS,),
        **experts(),
        "ffn_gate_inp.bias": (N_EXPERTS,),
        **{f"ffn_{part}_exps.bias": (N_EXPERTS, n) for part, n in n_rows.items()},
    }
    return _alike(layer, {**RMS, **HEADS, **_HEAD, **EXPERTS, **_SLIDING})


def _latent(n_query: int | None, n_low: int, n_turned: int, *, absorbed: bool) -> Shapes:
    """Keys and values from a few numbers. n_query: how few queries are made from. absorbed: as
    the cache holds the few, else all."""
    n_key = N_HEADS * (HEAD + n_turned)
    queries = matrix("attn_q", n_key, WIDTH)
    if n_query is not None:
        queries = {
            **matrix("attn_q_a", n_query, WIDTH),
            **norm("attn_q_a_norm", n=n_query),
            **matrix("attn_q_b", n_key, n_query),
        }
    made: Shapes = {"attn_kv_b.weight": (2 * N_HEADS * HEAD, n_low)}
    if absorbed:
        made = {
            "attn_k_b.weight": (N_HEADS, n_low, HEAD),
            "attn_v_b.weight": (N_HEADS, HEAD, n_low),
        }
    return {
        **queries,
        **matrix("attn_kv_a_mqa", n_low + n_turned, WIDTH),
        **norm("attn_kv_a_norm", n=n_low),
        **made,
        **matrix("attn_output", WIDTH, N_HEADS * HEAD),
    }


def _deepseek2() -> Animal:
    n_low = n_turned = 32
    rest = {**norm("attn_norm", "ffn_norm"), **_latent(32, n_low, n_turned, absorbed=True)}
    keys: Keys = {
        **RMS,
        **EXPERTS,
        "expert_shared_count": 1,
        "expert_gating_func": 2,
        "leading_dense_block_count": 1,
        "attention.head_count": N_HEADS,
        "attention.head_count_kv": 1,
        "attention.q_lora_rank": 32,
        "attention.kv_lora_rank": n_low,
        "attention.key_length": n_low + n_turned,
        "attention.value_length": n_low,
        "attention.key_length_mla": HEAD + n_turned,
        "attention.value_length_mla": HEAD,
        "rope.dimension_count": n_turned,
    }
    mixture = experts(shared=True, scores=True)
    return Animal(keys, [{**rest, **feed_forward()}, {**rest, **mixture}])


def _minicpm3() -> Animal:
    layer = {
        **norm("attn_norm", "ffn_norm"),
        **_latent(32, 32, 32, absorbed=False),
        **feed_forward(),
    }
    keys: Keys = {
        **RMS,
        "attention.head_count": N_HEADS,
        "attention.head_count_kv": N_HEADS,
        "attention.q_lora_rank": 32,
        "attention.kv_lora_rank": 32,
        "attention.key_length": HEAD + 32,
        "attention.value_length": HEAD,
        "rope.dimension_count": 32,
    }
    return _alike(layer, keys)


def _mixture(*, shared: bool = False, scores: bool = False) -> Shapes:
    return {
        **norm("attn_norm", "ffn_norm"),
        **attention(),
        **_QK_NORMS,
        **experts(shared=shared, scores=scores),
    }


def _llama4() -> Animal:
    rest = {**norm("attn_norm", "ffn_norm"), **attention()}
    keys: Keys = {**RMS, **HEADS, **EXPERTS, "interleave_moe_layer_step": 2}
    dense, mixed = {**rest, **feed_forward()}, {**rest, **experts(shared=True)}
    return Animal(keys, [dense, mixed, dense, mixed])


def _gemma4() -> Animal:
    """Layers with heads of two lengths; the last two take keys and values of those before, and each
    has an embedding of its own."""
    n_own, n_layers = 32, 4
    rest: Shapes = {
        **_SANDWICH,
        **feed_forward(),
        **matrix("inp_gate", n_own, WIDTH),
        **matrix("proj", WIDTH, n_own),
        **norm("post_norm"),
    }
    layers = [
        {**rest, **attention(head=n), **norm("attn_q_norm", "attn_k_norm", n=n)}
        for n in (HEAD, 2 * HEAD) * 2
    ]
    top: Shapes = {
        **TOP,
        "rope_freqs.weight": (HEAD,),
        "per_layer_token_embd.weight": (-1, n_own * n_layers),
        **matrix("per_layer_model_proj", n_own * n_layers, WIDTH),
        **norm("per_layer_proj_norm", n=n_own),
    }
    keys: Keys = {
        **RMS,
        **HEADS,
        **_SLIDING,
        "attention.sliding_window_pattern": [True, False] * 2,
        "attention.shared_kv_layers": 2,
        "attention.key_length": 2 * HEAD,
        "attention.value_length": 2 * HEAD,
        "attention.key_length_swa": HEAD,
        "attention.value_length_swa": HEAD,
        "rope.dimension_count": 2 * HEAD,
        "rope.dimension_count_swa": HEAD,
        "embedding_length_per_layer_input": n_own,
        "final_logit_softcapping": 30.0,
    }
    return Animal(keys, layers, top, loudness=0.05)


def _glm4moe() -> Animal:
    rest = {**norm("attn_norm", "post_attention_norm"), **attention(), **_QK_NORMS}
    keys: Keys = {
        **RMS,
        **HEADS,
        **EXPERTS,
        **_HEAD,
        "expert_shared_count": 1,
        "leading_dense_block_count": 1,
        "rope.dimension_count": HEAD // 2,
    }
    mixture = experts(shared=True, scores=True)
    layers = [{**rest, **feed_forward()}, {**rest, **mixture}]
    return Animal(keys, layers, own=predicting(rest, mixture))


def _olmo2() -> Animal:
    layer: Shapes = {
        **attention(),
        **norm("attn_q_norm", n=N_HEADS * HEAD),
        **norm("attn_k_norm", n=N_KV_HEADS * HEAD),
        **norm("post_attention_norm", "post_ffw_norm"),
        **feed_forward(),
    }
    return _alike(layer, {**RMS, **HEADS})


_PLAIN: Shapes = {**norm("attn_norm", "ffn_norm"), **attention(), **feed_forward()}
_OLD: Shapes = {
    **norm("attn_norm", "ffn_norm", bias=True),
    **feed_forward(gate=False, bias=True),
}
_PHI3: Shapes = {
    **norm("attn_norm", "ffn_norm"),
    **fused_attention(),
    **matrix("ffn_up", 2 * N_FF, WIDTH),
    **matrix("ffn_down", WIDTH, N_FF),
}
_FULL: Keys = {"attention.head_count": N_HEADS}

ATTENTIVE: dict[str, Animal] = {
    "llama": _alike(_PLAIN, {**RMS, **HEADS}),
    "gemma2": _alike(
        {**_SANDWICH, **attention(), **feed_forward()},
        {
            **RMS,
            **HEADS,
            **_HEAD,
            **_SLIDING,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 30.0,
        },
        norm("output_norm"),
        loudness=0.05,
    ),
    "gemma3": _alike(
        {**_SANDWICH, **attention(), **_QK_NORMS, **feed_forward()},
        {**RMS, **HEADS, **_HEAD, **_SLIDING, "attention.sliding_window_pattern": 2},
    ),
    "gemma4": _gemma4(),
    "gpt-oss": _gpt_oss(),
    "deepseek2": _deepseek2(),
    "cohere2": _alike(
        {**norm("attn_norm"), **attention(), **feed_forward()},
        {
            **LAYER_NORM,
            **HEADS,
            **_SLIDING,
            "attention.sliding_window_pattern": 2,
            "logit_scale": 0.25,
        },
        norm("output_norm"),
    ),
    "mellum": _alike(
        _mixture(),
        {**RMS, **HEADS, **_HEAD, **EXPERTS, **_SLIDING, "attention.sliding_window_pattern": 2},
    ),
    "qwen3moe": _alike(_mixture(), {**RMS, **HEADS, **_HEAD, **EXPERTS}),
    "llama4": _llama4(),
    "starcoder2": _alike(
        {**_OLD, **attention(bias=True)}, {**LAYER_NORM, **HEADS, **_SLIDING}, _BIASED_TOP
    ),
    "phi3": _alike(_PHI3, {**RMS, **HEADS, "rope.dimension_count": HEAD}),
    "qwen2vl": _alike(_PLAIN, {**RMS, **HEADS, "rope.dimension_sections": [8, 4, 4, 0]}),
    "refact": _alike(_PLAIN, {**RMS, **HEADS}),
    "starcoder": _alike(
        {**_OLD, **fused_attention(n_kv=1, bias=True)},
        {**LAYER_NORM, **HEADS, "attention.head_count_kv": 1},
        {**_BIASED_TOP, "position_embd.weight": (N_CTX, WIDTH)},
    ),
    "gptneox": _alike(
        {**_OLD, **fused_attention(n_kv=N_HEADS, bias=True)},
        {**LAYER_NORM, **_FULL, "use_parallel_residual": True, "rope.dimension_count": HEAD // 2},
        _BIASED_TOP,
    ),
    "bloom": _alike(
        {**_OLD, **fused_attention(n_kv=N_HEADS, bias=True)},
        {**LAYER_NORM, **_FULL},
        {**norm("token_embd_norm", bias=True), **_BIASED_TOP},
    ),
    "mpt": _alike(
        {**_OLD, **fused_attention(n_kv=N_HEADS, bias=True)},
        {**LAYER_NORM, **_FULL, "attention.max_alibi_bias": 8.0, "attention.clamp_kqv": 4.0},
        _BIASED_TOP,
    ),
    "olmo2": _olmo2(),
    "glm4moe": _glm4moe(),
    "minicpm3": _minicpm3(),
}
