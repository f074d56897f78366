"""Our products of matrices on their own: right, and the same to the bit for any number of columns,
for experts, and from weights in their order."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import gguf
import numpy as np
import pytest

from codespec.backends.llama import kernels
from codespec.backends.llama.kernels_check import Graph, function
from codespec.backends.llama.loader import lib
from codespec.native import KERNELS

pytestmark = pytest.mark.skipif(not kernels.NAME, reason=f"no kernels: {kernels.WHY_NOT}")

Q8_0 = np.dtype([("scale", np.float16), ("numbers", np.int8, 32)])
Q8_1 = np.dtype([("scale", np.float16), ("sum", np.float16), ("numbers", np.int8, 32)])
Q8_K = np.dtype([("scale", np.float32), ("numbers", np.int8, 256), ("sums", np.int16, 16)])
TYPES = gguf.GGMLQuantizationType
# Of a block: its scales, by their places in bytes, half precision but for MXFP4; what states are.
FORMATS: dict[Any, tuple[tuple[int, ...], np.dtype[Any]]] = {
    TYPES.Q8_0: ((0,), Q8_0),
    TYPES.Q4_0: ((0,), Q8_0),
    TYPES.Q4_1: ((0, 2), Q8_1),
    TYPES.Q5_0: ((0,), Q8_0),
    TYPES.Q5_1: ((0, 2), Q8_1),
    TYPES.IQ4_NL: ((0,), Q8_0),
    TYPES.MXFP4: ((0,), Q8_0),
    TYPES.Q2_K: ((80, 82), Q8_K),
    TYPES.Q3_K: ((108,), Q8_K),
    TYPES.Q4_K: ((0, 2), Q8_K),
    TYPES.Q5_K: ((0, 2), Q8_K),
    TYPES.Q6_K: ((208,), Q8_K),
    TYPES.IQ4_XS: ((0,), Q8_K),
    TYPES.F16: ((0,), np.dtype(np.float16)),
    TYPES.BF16: ((0,), np.dtype(np.uint16)),
    TYPES.F32: ((0,), np.dtype(np.float32)),
}
FLOATS = TYPES.F16, TYPES.BF16, TYPES.F32
STATES = {FORMATS[kind][1]: kind for kind in FLOATS} | {
    Q8_0: TYPES.Q8_0,
    Q8_1: TYPES.Q8_1,
    Q8_K: TYPES.Q8_K,
}
if kernels.NAME:
    LIBRARY = ctypes.CDLL(str(KERNELS))
    LIBRARY.llamafile_sgemm.restype = ctypes.c_bool


@pytest.fixture(params=FORMATS, ids=lambda kind: kind.name)
def kind(instructions: str, request: pytest.FixtureRequest) -> Any:
    """Each, by each instruction set."""
    return request.param


def weights_of(kind: Any, rng: np.random.Generator, n: int, n_blocks: int) -> Any:
    """(n, bytes): any bytes, but for the scales."""
    if kind in FLOATS:
        return states_of(kind, rng, n, n_blocks).view(np.uint8)
    block = np.frombuffer(rng.bytes(n * n_blocks * gguf.GGML_QUANT_SIZES[kind][1]), np.uint8)
    blocks = block.reshape(n, n_blocks, -1).copy()
    for place in FORMATS[kind][0]:
        if kind == TYPES.MXFP4:
            blocks[..., place] = rng.integers(118, 123, (n, n_blocks))
        else:
            scales = rng.uniform(-0.02, 0.02, (n, n_blocks, 1)).astype(np.float16)
            blocks[..., place : place + 2] = scales.view(np.uint8)
    return blocks.reshape(n, -1)


def states_of(kind: Any, rng: np.random.Generator, n: int, n_blocks: int) -> Any:
    if kind in FLOATS:
        return floats(kind, rng.normal(size=(n, 7 * n_blocks)))
    out: Any = np.zeros((n, n_blocks), FORMATS[kind][1])
    out["scale"] = rng.uniform(-0.02, 0.02, out.shape)
    out["numbers"] = rng.integers(-127, 128, out["numbers"].shape)
    if out.dtype == Q8_1:  # so that half precision has all sums
        out["scale"] = rng.choice([1 / 64, 1 / 128, 1 / 256], out.shape)
        out["numbers"] //= 2
    return with_sums(out)


def floats(kind: Any, numbers: Any) -> Any:
    return gguf.quants.quantize(numbers.astype(np.float32), kind).view(FORMATS[kind][1])


def with_sums(states: Any) -> Any:
    if states.dtype == Q8_K:
        states["sums"] = states["numbers"].reshape(*states.shape, 16, 16).sum(axis=-1)
    if states.dtype == Q8_1:
        states["sum"] = states["scale"] * states["numbers"].sum(axis=-1, dtype=np.float32)
    return states


def plain_weights(kind: Any, weights: Any) -> Any:
    return gguf.quants.dequantize(weights, kind).astype(np.float64)


def plain_states(states: Any) -> Any:
    if states.dtype.names is None:
        return plain_weights(STATES[states.dtype], states.view(np.uint8))
    scales = states["scale"][..., None].astype(np.float64)
    return (states["numbers"] * scales).reshape(len(states), -1)


def product(kind: Any, weights: Any, states: Any, n_threads: int = 1) -> Any:
    """(columns, rows) float32, by all threads in turn."""
    n_blocks = states.shape[1]
    out = np.full((len(states), len(weights)), np.nan, np.float32)
    for thread in range(n_threads):
        done = LIBRARY.llamafile_sgemm(
            (ctypes.c_int * 2)(thread, n_threads),
            *map(ctypes.c_int64, (len(weights), len(states), n_blocks)),
            *(ctypes.c_void_p(weights.ctypes.data), ctypes.c_int64(n_blocks)),
            *(ctypes.c_void_p(states.ctypes.data), ctypes.c_int64(n_blocks)),
            *(ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(out.shape[1])),
            *(int(kind), int(STATES[states.dtype]), 0),
        )
        assert done
    return out


@pytest.mark.parametrize("n_rows", [16, 17, 31, 64, 100])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 7, 8, 16, 17, 24, 33, 128, 129, 150])
def test_products_are_right(kind: Any, n_rows: int, n_columns: int) -> None:
    rng = np.random.default_rng(n_rows * 1000 + n_columns)
    weights, states = weights_of(kind, rng, n_rows, 5), states_of(kind, rng, n_columns, 5)
    expected = plain_states(states) @ plain_weights(kind, weights).T
    size = np.abs(plain_states(states)) @ np.abs(plain_weights(kind, weights)).T
    for n_threads in (1, 2, 3):
        assert (np.abs(product(kind, weights, states, n_threads) - expected) <= 2e-6 * size).all()


@pytest.mark.parametrize("n_rows", [90, 16, 11, 1])
def test_a_column_is_the_same_to_the_bit_in_any_company(
    kind: Any, instructions: str, n_rows: int
) -> None:
    n_least = 8 if instructions == "avx-vnni" else 16
    if n_rows < n_least and kind not in FLOATS:
        pytest.skip("so few rows are left to llama.cpp")
    rng = np.random.default_rng(5)
    weights, states = weights_of(kind, rng, n_rows, 7), states_of(kind, rng, 200, 7)
    alone = np.concatenate([product(kind, weights, states[i : i + 1]) for i in range(len(states))])
    for n_columns in (2, 5, 16, 17, 24, 31, 64, 128, 200):
        assert (product(kind, weights, states[:n_columns], 2) == alone[:n_columns]).all()


def test_what_lies_behind_a_row_of_floats_does_not_count(kind: Any) -> None:
    if kind not in FLOATS:
        pytest.skip("of other kinds rows are whole blocks")
    for length in (1, 15, 16, 17, 31, 33):
        memory = floats(kind, np.full((17, 40), np.nan))
        row = floats(kind, np.ones((1, length)))
        memory[:, :length] = row
        out = np.zeros((1, 17), np.float32)
        assert LIBRARY.llamafile_sgemm(
            (ctypes.c_int * 2)(0, 1),
            *map(ctypes.c_int64, (17, 1, length)),
            *(ctypes.c_void_p(memory.ctypes.data), ctypes.c_int64(40)),
            *(ctypes.c_void_p(row.ctypes.data), ctypes.c_int64(length)),
            *(ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(17)),
            *(int(kind), int(kind), 0),
        )
        assert (out == length).all()


def test_the_ends_of_the_range_do_not_overflow(kind: Any) -> None:
    if kind in FLOATS:
        pytest.skip("its sums are float32")
    for byte, number in itertools.product((0, 0x7F, 0x80, 0xFF), (-127, 127)):
        weights = np.full((16, 2 * gguf.GGML_QUANT_SIZES[kind][1]), byte, np.uint8)
        blocks = weights.reshape(16, 2, -1)
        for place in FORMATS[kind][0]:
            if kind == TYPES.MXFP4:
                blocks[..., place] = 128
            else:
                blocks[..., place : place + 2] = np.ones(1, np.float16).view(np.uint8)
        for n_columns in (3, 16):
            states: Any = np.zeros((n_columns, 2), FORMATS[kind][1])
            states["scale"], states["numbers"] = 1, number
            expected = plain_states(states) @ plain_weights(kind, weights).T
            assert np.allclose(product(kind, weights, with_sums(states)), expected, rtol=1e-6)


def as_states(kind: Any, numbers: Any) -> Any:
    """float32 in the type that weights of this kind are multiplied with, as llama.cpp makes it."""
    if kind in FLOATS:
        return floats(kind, numbers)
    n_blocks = numbers.shape[1] // gguf.GGML_QUANT_SIZES[kind][0]
    out: Any = np.zeros((len(numbers), n_blocks), FORMATS[kind][1])
    name = {Q8_0: "q8_0", Q8_1: "q8_1", Q8_K: "q8_K"}[out.dtype]
    for i, row in enumerate(numbers):
        at = (ctypes.c_void_p(array.ctypes.data) for array in (row, out[i]))
        lib.llama_cpp._lib[f"quantize_row_{name}"](*at, ctypes.c_int64(row.size))
    return out


@pytest.mark.parametrize("n_tokens", [1, 2, 16, 17, 300])
@pytest.mark.parametrize(("n_rows", "n_slots"), [(16, 1), (70, 3)])
def test_experts_multiply_as_if_they_were_asked_alone(
    kind: Any, n_tokens: int, n_rows: int, n_slots: int
) -> None:
    if kind == TYPES.F32:
        pytest.skip("such experts are left to llama.cpp")
    n_experts, n_used, length = 5, 3, 512
    rng = np.random.default_rng(n_tokens)
    if kind in FLOATS:
        weights = floats(kind, rng.normal(size=(n_experts, n_rows, length))).view(np.uint8)
    else:
        n_blocks = length // gguf.GGML_QUANT_SIZES[kind][0]
        weights = weights_of(kind, rng, n_experts * n_rows, n_blocks)
        weights = weights.reshape(n_experts, n_rows, -1)
    with Graph(lib.llama_cpp._lib, 1 << 24) as context:
        experts = context.tensor(int(kind), length, n_rows, n_experts)
        context.array(experts, np.uint8, *weights.shape)[:] = weights
        states = context.tensor(int(TYPES.F32), length, n_slots, n_tokens)
        numbers = context.array(states, np.float32, n_tokens, n_slots, length)
        numbers[:] = rng.normal(size=numbers.shape)
        chosen = context.tensor(int(TYPES.I32), n_used, n_tokens)
        routes = context.array(chosen, np.int32, n_tokens, n_used)
        routes[:] = rng.permuted(np.tile(np.arange(n_experts), (n_tokens, 1)), axis=1)[:, :n_used]
        columns = [as_states(kind, numbers[:, slot]) for slot in range(n_slots)]
        out = context.routed(experts, states, chosen)
        for n_threads in (1, 2, 3):
            before = kernels.n_products()
            context.compute(out, n_threads)
            assert kernels.n_products() == before + len(np.unique(routes))
            found = context.array(out, np.float32, n_tokens, n_used, n_rows)
            for slot, expert in np.ndindex(n_used, n_experts):
                alone = product(kind, weights[expert], columns[slot % n_slots])
                is_its = routes[:, slot] == expert
                assert (found[is_its, slot] == alone[is_its]).all()


@pytest.fixture
def memory(instructions: str) -> Iterator[Callable[..., tuple[Graph, int]]]:
    """Makes a tensor in llama.cpp's memory for weights in order."""
    before = kernels.n_ordered()
    theirs = lib.llama_cpp._lib
    buffer_type = function(theirs, "ggml_backend_cpu_buffer_type", ctypes.c_void_p)()
    make = LIBRARY.codespec_kernels_weights
    make.restype, make.argtypes = ctypes.c_void_p, [ctypes.c_void_p] * 2
    made: list[tuple[Graph, int]] = []

    def tensor(kind: int, *sizes: int) -> tuple[Graph, int]:
        context = Graph(theirs, no_alloc=True)
        found = context.tensor(kind, *sizes)
        size_of = ctypes.cast(theirs.ggml_nbytes, ctypes.c_void_p)
        made.append((context, context.allocate(make(buffer_type, size_of))))
        return context, found

    yield tensor
    for context, buffer in made:
        function(theirs, "ggml_backend_buffer_free", None, ctypes.c_void_p)(buffer)
        context.__exit__()
    assert kernels.n_ordered() == before


def set_to(tensor: int, data: Any, start: int = 0) -> None:
    at, number = ctypes.c_void_p, ctypes.c_size_t
    call = function(lib.llama_cpp._lib, "ggml_backend_tensor_set", None, at, at, number, number)
    call(tensor, data.ctypes.data, start, data.nbytes)


@pytest.mark.parametrize("n_rows", [16, 17, 31, 64, 100])
@pytest.mark.parametrize("n_blocks", [1, 2, 5, 39])
def test_weights_in_order_give_the_same_to_the_bit(
    memory: Callable[..., tuple[Graph, int]], n_rows: int, n_blocks: int
) -> None:
    rng = np.random.default_rng(n_rows)
    weights = weights_of(TYPES.Q8_0, rng, n_rows, n_blocks)
    states = states_of(TYPES.Q8_0, rng, 40, n_blocks)
    context, tensor = memory(TYPES.Q8_0, 32 * n_blocks, n_rows)
    set_to(tensor, weights)
    kept = context.array(tensor, np.uint8, *weights.shape)
    assert (kept == weights).all()
    before = kernels.n_ordered()
    for n_columns in (1, 2, 6, 7, 17, 18, 40):
        for n_threads in (1, 2, 3):
            found = product(TYPES.Q8_0, kept, states[:n_columns], n_threads)
            assert (found == product(TYPES.Q8_0, weights, states[:n_columns])).all()
    assert kernels.n_ordered() == before + 1
    # A part that begins at the same place is another matrix.
    part = product(TYPES.Q8_0, kept[: n_rows - 1] if n_rows > 16 else kept, states)
    assert (part == product(TYPES.Q8_0, weights, states)[:, : part.shape[1]]).all()


def test_what_is_set_later_counts(memory: Callable[..., tuple[Graph, int]]) -> None:
    rng = np.random.default_rng(8)
    first, second = (weights_of(TYPES.Q8_0, rng, 32, 3) for _ in range(2))
    states = states_of(TYPES.Q8_0, rng, 2, 3)
    context, tensor = memory(TYPES.Q8_0, 96, 32)
    kept = context.array(tensor, np.uint8, *first.shape)
    before = kernels.n_ordered()
    set_to(tensor, first)
    product(TYPES.Q8_0, kept, states)
    set_to(tensor, second[16:], first[:16].nbytes)
    mixed = np.concatenate([first[:16], second[16:]])
    assert (product(TYPES.Q8_0, kept, states) == product(TYPES.Q8_0, mixed, states)).all()
    assert kernels.n_ordered() == before  # it comes in parts
    set_to(tensor, second)
    assert (product(TYPES.Q8_0, kept, states) == product(TYPES.Q8_0, second, states)).all()
    assert kernels.n_ordered() == before + 1


def test_other_kinds_stay_as_they_are(memory: Callable[..., tuple[Graph, int]]) -> None:
    rng = np.random.default_rng(9)
    weights, states = (rng.normal(size=(n, 70)).astype(np.float16) for n in (20, 3))
    context, tensor = memory(TYPES.F16, 70, 20)
    set_to(tensor, weights)
    kept = context.array(tensor, np.float16, *weights.shape)
    before = kernels.n_ordered()
    found = product(TYPES.F16, kept.view(np.uint8), states)
    assert (found == product(TYPES.F16, weights.view(np.uint8), states)).all()
    assert kernels.n_ordered() == before
