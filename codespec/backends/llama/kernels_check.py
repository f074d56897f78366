"""Self-tests of our CPU kernels, run on this machine before the kernels are used.

llama-cpp-python's version is pinned, but its compiler and build options are not.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

TYPE_F32, TYPE_F16, TYPE_Q8_0, _Q8_1, TYPE_Q6_K, _Q8_K = 0, 1, 8, 9, 14, 15
_TYPE_I32, _TYPE_BF16 = 26, 30
FLOATS = TYPE_F32, TYPE_F16, _TYPE_BF16
QUANTISED = {
    2: ("q4_0", 18, TYPE_Q8_0),
    3: ("q4_1", 20, _Q8_1),
    6: ("q5_0", 22, TYPE_Q8_0),
    7: ("q5_1", 24, _Q8_1),
    10: ("q2_K", 84, _Q8_K),
    11: ("q3_K", 110, _Q8_K),
    12: ("q4_K", 144, _Q8_K),
    13: ("q5_K", 176, _Q8_K),
    TYPE_Q6_K: ("q6_K", 210, _Q8_K),
    20: ("iq4_nl", 18, TYPE_Q8_0),
    23: ("iq4_xs", 136, _Q8_K),
    39: ("mxfp4", 17, TYPE_Q8_0),
}
"""ggml's types of weights below a byte: name, bytes of a block, type of the activations."""
_STATES = {TYPE_Q8_0: ("q8_0", 34, 32), _Q8_1: ("q8_1", 36, 32), _Q8_K: ("q8_K", 292, 256)}
"""Types of quantised activations: name, bytes and numbers of a block."""
_Q8_0 = np.dtype([("scale", np.float16), ("numbers", np.int8, 32)])

_at, _number = ctypes.c_void_p, ctypes.c_int64


class _Tensor(ctypes.Structure):
    """Layout of ggml_tensor, as native/kernels/hook.cpp declares it."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", _at),
        ("sizes", _number * 4),
        ("strides", ctypes.c_size_t * 4),
        ("operation", ctypes.c_int),
        ("options", ctypes.c_float * 16),
        ("flags", ctypes.c_int32),
        ("sources", _at * 10),
        ("whole", _at),
        ("place", ctypes.c_size_t),
        ("data", _at),
    )


def function(theirs: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A function of llama.cpp's library with its types. Raises: AttributeError where it is
    missing."""
    out = theirs[name]
    out.restype, out.argtypes = result, arguments
    return out


class Graph:
    """A ggml context: its tensors, and graphs computed with them."""

    def __init__(self, theirs: Any, n_bytes: int = 1 << 20, no_alloc: bool = False) -> None:
        class _Params(ctypes.Structure):
            _fields_ = (("n_bytes", ctypes.c_size_t), ("memory", _at), ("no_alloc", ctypes.c_bool))

        self._theirs = theirs
        theirs.ggml_cpu_init()
        self._at = function(theirs, "ggml_init", _at, _Params)(_Params(n_bytes, None, no_alloc))

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        function(self._theirs, "ggml_free", None, _at)(self._at)

    def tensor(self, kind: int, *sizes: int) -> int:
        """A new tensor of a ggml type, with up to four sizes."""
        make = function(self._theirs, "ggml_new_tensor_4d", _at, _at, ctypes.c_int, *[_number] * 4)
        return int(make(self._at, kind, *(*sizes, 1, 1)[:4]))

    def allocate(self, buffer_type: int) -> int:
        """Allocate memory for all tensors. Returns: the buffer, to be freed; 0 for failure."""
        name = "ggml_backend_alloc_ctx_tensors_from_buft"
        return int(function(self._theirs, name, _at, _at, _at)(self._at, buffer_type) or 0)

    def attention(self, *sources: int, scale: float, bias: float = 0.0, cap: float = 0.0) -> int:
        """A flash attention tensor. sources: queries, keys, values, mask."""
        number = ctypes.c_float
        make = function(self._theirs, "ggml_flash_attn_ext", *[_at] * 6, *[number] * 3)
        return int(make(self._at, *sources, scale, bias, cap))

    def routed(self, *sources: int) -> int:
        """A product of experts. sources: matrices of experts, activations, experts of each
        token."""
        return int(function(self._theirs, "ggml_mul_mat_id", *[_at] * 5)(self._at, *sources))

    def array(self, tensor: int, kind: type[np.generic], *shape: int) -> Any:
        """A tensor's memory as an array."""
        place = function(self._theirs, "ggml_get_data", _at, _at)(tensor)
        n_bytes = np.dtype(kind).itemsize * int(np.prod(shape))
        memory = memoryview((ctypes.c_uint8 * n_bytes).from_address(place)).cast("B")
        return np.frombuffer(memory, kind).reshape(shape)

    def compute(self, tensor: int, n_threads: int = 1) -> None:
        """Compute a tensor and its sources."""
        graph = function(self._theirs, "ggml_new_graph", _at, _at)(self._at)
        function(self._theirs, "ggml_build_forward_expand", None, _at, _at)(graph, tensor)
        compute = function(
            self._theirs, "ggml_graph_compute_with_ctx", ctypes.c_int, _at, _at, ctypes.c_int
        )
        compute(self._at, graph, n_threads)


def knows_tensors(theirs: Any) -> bool:
    """True if ggml_tensor has the layout that the kernels read."""
    with Graph(theirs) as context:
        sources = [
            context.tensor(TYPE_F32, 32, 3, 4),
            context.tensor(TYPE_F16, 32, 16, 2),
            context.tensor(TYPE_F16, 32, 16, 2),
            context.tensor(TYPE_F16, 16, 3),
        ]
        out = context.attention(*sources, scale=0.5)
        queries, attention = (_Tensor.from_address(tensor) for tensor in (sources[0], out))
        place = function(theirs, "ggml_get_data", _at, _at)(sources[0])
        return (
            (queries.type, *queries.sizes) == (TYPE_F32, 32, 3, 4, 1)
            and [*queries.strides] == [4, 128, 384, 1536]
            and queries.data == place
            and [*attention.sources] == [*sources, *[None] * 6]
            and [*attention.options][:3] == [0.5, 0, 0]
        )


def attends_right(ours: Any, theirs: Any) -> bool:
    """True if the kernels compute attention, and its result equals numpy's."""
    length, n_queries, n_keys, n_heads, n_key_heads = 48, 5, 96, 6, 2
    rng = np.random.default_rng(1)
    with Graph(theirs) as context:
        tensors = [
            context.tensor(TYPE_F32, length, n_queries, n_heads),
            context.tensor(TYPE_F16, length, n_keys, n_key_heads),
            context.tensor(TYPE_F16, length, n_keys, n_key_heads),
            context.tensor(TYPE_F16, n_keys, n_queries),
        ]
        queries = context.array(tensors[0], np.float32, n_heads, n_queries, length)
        keys, values = (
            context.array(tensor, np.float16, n_key_heads, n_keys, length)
            for tensor in tensors[1:3]
        )
        mask = context.array(tensors[3], np.float16, n_queries, n_keys)
        for array in (queries, keys, values):
            array[:] = rng.normal(size=array.shape)
        mask[:] = np.where(rng.random(mask.shape) < 0.5, 0, -np.inf)
        mask[:, 0], mask[:2, 32:] = 0, -np.inf
        out = context.attention(*tensors, scale=0.3)
        before = ours.codespec_kernels_count_attentions()
        context.compute(out)
        if ours.codespec_kernels_count_attentions() == before:
            return False
        found = context.array(out, np.float32, n_queries, n_heads, length)
        shared = n_heads // n_key_heads
        scores = 0.3 * queries @ keys.astype(np.float64).repeat(shared, 0).swapaxes(1, 2) + mask
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        expected = weights @ values.astype(np.float64).repeat(shared, 0)
        return bool(np.allclose(found, expected.swapaxes(0, 1), rtol=1e-4, atol=1e-5))


def routes_right(ours: Any, theirs: Any) -> bool:
    """True if the kernels compute products of experts, and the result equals numpy's."""
    n_experts, n_rows, n_blocks, n_used, n_tokens = 4, 37, 3, 2, 5
    rng = np.random.default_rng(3)
    with Graph(theirs) as context:
        tensors = [
            context.tensor(TYPE_Q8_0, 32 * n_blocks, n_rows, n_experts),
            context.tensor(TYPE_F32, 32 * n_blocks, n_used, n_tokens),
            context.tensor(_TYPE_I32, n_used, n_tokens),
        ]
        weights = context.array(tensors[0], np.uint8, n_experts * n_rows * n_blocks * 34)
        blocks = _blocks(rng, n_experts * n_rows, n_blocks)
        weights[:] = blocks.view(np.uint8).ravel()
        states = context.array(tensors[1], np.float32, n_tokens, n_used, 32 * n_blocks)
        states[:] = rng.integers(-127, 128, states.shape)  # quantised to bytes they are unchanged
        states[..., ::32] = 127
        chosen = context.array(tensors[2], np.int32, n_tokens, n_used)
        chosen[:] = rng.permuted(np.tile(np.arange(n_experts), (n_tokens, 1)), axis=1)[:, :n_used]
        out = context.routed(*tensors)
        before = ours.codespec_kernels_count()
        context.compute(out)
        if ours.codespec_kernels_count() == before:
            return False
        found = context.array(out, np.float32, n_tokens, n_used, n_rows)
        experts = _plain(blocks).reshape(n_experts, n_rows, -1)
        return _is_near(found, np.einsum("turk,tuk->tur", experts[chosen], states))


def orders_right(ours: Any, theirs: Any, buffer_type: int) -> bool:
    """True if weights are kept in the order of products, multiplied from there, and freed with
    their buffer."""
    rng = np.random.default_rng(2)
    n_blocks = 5
    weights, states = _blocks(rng, 37, n_blocks), _blocks(rng, 3, n_blocks)
    before = ours.codespec_kernels_count_ordered()
    with Graph(theirs, no_alloc=True) as context:
        tensor = context.tensor(TYPE_Q8_0, 32 * n_blocks, len(weights))
        buffer = context.allocate(buffer_type)
        if not buffer:
            return False
        try:
            set_to = function(theirs, "ggml_backend_tensor_set", None, *[_at] * 2, *[_number] * 2)
            set_to(tensor, weights.ctypes.data, 0, weights.nbytes)
            kept = context.array(tensor, np.uint8, weights.nbytes).view(_Q8_0)
            found = _product(ours, kept.reshape(weights.shape), states, n_blocks, *[TYPE_Q8_0] * 2)
            is_kept = ours.codespec_kernels_count_ordered() == before + 1
        finally:
            function(theirs, "ggml_backend_buffer_free", None, _at)(buffer)
    is_gone = ours.codespec_kernels_count_ordered() == before
    expected = _product(ours, weights, states, n_blocks, *[TYPE_Q8_0] * 2)
    return is_kept and is_gone and found is not None and bool((found == expected).all())


def multiplies_right(ours: Any, theirs: Any) -> bool:
    """True if small products of every type equal numpy's and those of llama.cpp's own functions."""
    rng = np.random.default_rng(0)
    n_rows, n_columns, n_blocks = (
        37,
        43,
        3,
    )  # more columns than in verification: other code multiplies them

    weights, states = (_blocks(rng, n, n_blocks) for n in (n_rows, n_columns))
    expected = _plain(states) @ _plain(weights).T
    if not _is_near(_product(ours, weights, states, n_blocks, TYPE_Q8_0, TYPE_Q8_0), expected):
        return False
    for kind in FLOATS:
        (rows, exact_rows), (columns, exact) = (_floats(kind, rng, n) for n in (n_rows, n_columns))
        found = _product(ours, rows, columns, rows.shape[1], kind, kind)
        if not _is_near(found, exact @ exact_rows.T):
            return False
    theirs.ggml_cpu_init()
    some = {kind: _states(theirs, kind, rng, 3, n_blocks) for kind in _STATES}
    for kind, (name, n_bytes, state_kind) in QUANTISED.items():
        state_name, _, n_numbers = _STATES[state_kind]
        columns = some[state_kind]
        weights = rng.integers(0, 64, (17, n_blocks * n_bytes), np.uint8)  # no scale is NaN
        expected = np.zeros((len(columns), len(weights)), np.float32)
        for i, j in np.ndindex(expected.shape):
            theirs[f"ggml_vec_dot_{name}_{state_name}"](
                n_blocks * n_numbers,
                *(_address(expected[i, j:]), ctypes.c_size_t(0)),
                *(_address(weights[j]), ctypes.c_size_t(0)),
                *(_address(columns[i]), ctypes.c_size_t(0), 1),
            )
        # Other code multiplies many than few, and gives the same to the bit.
        few = _product(ours, weights, columns, n_blocks, kind, state_kind)
        many = _product(ours, weights, np.repeat(columns, 14, 0), n_blocks, kind, state_kind)
        if not _is_near(few, expected) or not (many == np.repeat(few, 14, 0)).all():
            return False
    return True


def _plain(blocks: Any) -> Any:
    """(rows, numbers) float64 of q8_0 blocks."""
    numbers = blocks["numbers"].astype(np.float64) * blocks["scale"][..., None]
    return numbers.reshape(len(blocks), -1)


def _is_near(found: Any, expected: Any) -> bool:
    return found is not None and np.allclose(
        found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()
    )


def _blocks(rng: np.random.Generator, n: int, n_blocks: int) -> Any:
    out = np.zeros((n, n_blocks), _Q8_0)
    out["scale"] = rng.uniform(0.01, 0.02, out.shape)
    out["numbers"] = rng.integers(-128, 128, out["numbers"].shape)
    return out


def _floats(kind: int, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Random (n, 41) numbers, as they are stored and in double precision."""
    numbers = rng.normal(size=(n, 41)).astype(np.float16 if kind == TYPE_F16 else np.float32)
    if kind != _TYPE_BF16:
        return numbers, numbers.astype(np.float64)
    upper = numbers.view(np.uint32) >> 16
    return upper.astype(np.uint16), (upper << 16).view(np.float32).astype(np.float64)


def _states(theirs: Any, kind: int, rng: np.random.Generator, n: int, n_blocks: int) -> Any:
    """Random activations (n, bytes), quantised by llama.cpp."""
    name, n_bytes, n_numbers = _STATES[kind]
    out = np.zeros((n, n_blocks * n_bytes), np.uint8)
    for state in out:
        numbers = rng.normal(size=n_blocks * n_numbers).astype(np.float32)
        quantise = theirs[f"quantize_row_{name}"]
        quantise(_address(numbers), _address(state), ctypes.c_int64(numbers.size))
    return out


def _address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _product(
    ours: Any, weights: Any, states: Any, n_blocks: int, kind: int, state_kind: int
) -> Any:
    """(columns, rows) product by the kernels; None where they do not take it."""
    out = np.zeros((len(states), len(weights)), np.float32)
    is_done = ours.llamafile_sgemm(
        *((ctypes.c_int * 2)(0, 1), len(weights), len(states), n_blocks),
        *(weights.ctypes.data, n_blocks, states.ctypes.data, n_blocks),
        *(out.ctypes.data, len(weights), kind, state_kind, TYPE_F32),
    )
    return out if is_done else None
