"""Our products of matrices inside llama.cpp: right, the same to the bit for any number of columns,
in use, and left out where they should be."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from bench.gpu.shapes import Shape, write_random
from codespec.backends.llama import LlamaTarget, kernels, load_model
from codespec.backends.llama.kernels_check import Graph, function
from codespec.backends.llama.loader import lib
from codespec.models.registry import BUNDLED_TARGET, bundled
from codespec.native import KERNELS
from codespec.types import NO_DRAFT, Draft

pytestmark = pytest.mark.skipif(not kernels.NAME, reason=f"no kernels: {kernels.WHY_NOT}")

Q8_0 = np.dtype([("scale", np.float16), ("numbers", np.int8, 32)])
Q8_1 = np.dtype([("scale", np.float16), ("sum", np.float16), ("numbers", np.int8, 32)])
Q8_K = np.dtype([("scale", np.float32), ("numbers", np.int8, 256), ("sums", np.int16, 16)])
TYPES = gguf.GGMLQuantizationType
# Of a block: its half-precision numbers, by their places in bytes; what states are.
FORMATS = {
    TYPES.Q8_0: ((0,), Q8_0),
    TYPES.Q4_0: ((0,), Q8_0),
    TYPES.Q4_1: ((0, 2), Q8_1),
    TYPES.Q5_0: ((0,), Q8_0),
    TYPES.Q5_1: ((0, 2), Q8_1),
    TYPES.IQ4_NL: ((0,), Q8_0),
    TYPES.Q4_K: ((0, 2), Q8_K),
    TYPES.Q5_K: ((0, 2), Q8_K),
    TYPES.Q6_K: ((208,), Q8_K),
    TYPES.IQ4_XS: ((0,), Q8_K),
    TYPES.F16: ((0,), np.dtype(np.float16)),
    TYPES.F32: ((0,), np.dtype(np.float32)),
}
FLOATS = TYPES.F16, TYPES.F32
STATES = {FORMATS[kind][1]: kind for kind in FLOATS}
STATES |= {Q8_0: TYPES.Q8_0, Q8_1: TYPES.Q8_1, Q8_K: TYPES.Q8_K}
if kernels.NAME:
    LIBRARY = ctypes.CDLL(str(KERNELS))
    LIBRARY.llamafile_sgemm.restype = ctypes.c_bool


@pytest.fixture(params=kernels.NAMES)
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    kernels.use(True, request.param)
    yield request.param
    kernels.use(True)


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
        scales = rng.uniform(-0.02, 0.02, (n, n_blocks, 1)).astype(np.float16)
        blocks[..., place : place + 2] = scales.view(np.uint8)
    return blocks.reshape(n, -1)


def states_of(kind: Any, rng: np.random.Generator, n: int, n_blocks: int) -> Any:
    if kind in FLOATS:
        return rng.normal(size=(n, 7 * n_blocks)).astype(FORMATS[kind][1])
    out = np.zeros((n, n_blocks), FORMATS[kind][1])
    out["scale"] = rng.uniform(-0.02, 0.02, out.shape)
    out["numbers"] = rng.integers(-127, 128, out["numbers"].shape)
    if out.dtype == Q8_1:  # so that half precision has all sums
        out["scale"] = rng.choice([1 / 64, 1 / 128, 1 / 256], out.shape)
        out["numbers"] //= 2
    return with_sums(out)


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
        return states.astype(np.float64)
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
        memory = np.full((17, 40), np.nan, FORMATS[kind][1])
        memory[:, :length] = 1
        row = np.ones((1, length), memory.dtype)
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
            blocks[..., place : place + 2] = np.ones(1, np.float16).view(np.uint8)
        for n_columns in (3, 16):
            states = np.zeros((n_columns, 2), FORMATS[kind][1])
            states["scale"], states["numbers"] = 1, number
            expected = plain_states(states) @ plain_weights(kind, weights).T
            assert np.allclose(product(kind, weights, with_sums(states)), expected, rtol=1e-6)


def as_states(kind: Any, numbers: Any) -> Any:
    """float32 in the type that weights of this kind are multiplied with, as llama.cpp makes it."""
    if kind == TYPES.F16:
        return numbers.astype(np.float16)
    n_blocks = numbers.shape[1] // gguf.GGML_QUANT_SIZES[kind][0]
    out = np.zeros((len(numbers), n_blocks), FORMATS[kind][1])
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
    if kind == TYPES.F16:
        weights = rng.normal(size=(n_experts, n_rows, length)).astype(np.float16).view(np.uint8)
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


@pytest.fixture(scope="module")
def target() -> Any:
    model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    target = LlamaTarget(model, n_ctx=512, n_threads=2)
    yield target
    target.close()
    model.close()


def logits(target: LlamaTarget, tokens: Any, n_drafted: int) -> Any:
    """(n_drafted + 1, vocabulary) of a pass over the last tokens, all but the first as a draft."""
    start = len(tokens) - n_drafted
    target.prefill(tokens[:start], lambda: False)
    draft = Draft.chain(tokens[start:]) if n_drafted else NO_DRAFT
    rows = target.decode(tokens[target.n_cached : start], draft)
    found = np.stack([rows.row(i) for i in range(n_drafted + 1)])
    target.keep([])
    return found


@pytest.mark.parametrize("n_drafted", [0, 1, 3, 16])
def test_a_model_says_the_same_with_them(
    target: LlamaTarget, instructions: str, n_drafted: int
) -> None:
    tokens = np.random.default_rng(3).integers(10, 8000, 120, np.int32)
    before = kernels.n_products()
    ours = logits(target, tokens, n_drafted)
    assert kernels.n_products() > before
    try:
        kernels.use(False)
        target.prefill(tokens[:1], lambda: False)  # forget what was read with ours
        before = kernels.n_products()
        theirs = logits(target, tokens, n_drafted)
        assert kernels.n_products() == before
    finally:
        kernels.use(True, instructions)
    assert np.abs(ours - theirs).max() < 0.2 * theirs.std()
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.999


SHAPE = Shape("small", 2, 256, 4, 2, 512, 8192, tied=True)
MIXTURE = replace(SHAPE, name="mixture", n_experts=8, n_used=3)


FILES = {
    gguf.LlamaFileType.MOSTLY_Q4_K_M: {TYPES.Q4_K, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_Q5_K_M: {TYPES.Q5_K, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_F16: {TYPES.F16},
    gguf.LlamaFileType.MOSTLY_Q4_0: {TYPES.Q4_0, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_Q5_1: {TYPES.Q5_1, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_Q5_0: {TYPES.Q5_0, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_IQ4_NL: {TYPES.IQ4_NL, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_IQ4_XS: {TYPES.IQ4_XS, TYPES.Q6_K},
}
"""As people download them, with what their matrices are."""


def random_model(shape: Shape, file_type: gguf.LlamaFileType, folder: Path) -> Path:
    plain, out = folder / "plain.gguf", folder / f"{file_type.name}.gguf"
    write_random(plain, shape, "f16", bundled(BUNDLED_TARGET))
    settings = lib.llama_model_quantize_default_params()
    settings.ftype = int(file_type)
    assert lib.llama_model_quantize(bytes(plain), bytes(out), ctypes.byref(settings)) == 0
    kinds = {tensor.tensor_type for tensor in gguf.GGUFReader(out).tensors}
    assert FILES[file_type] <= kinds
    return out


@pytest.fixture(
    scope="module",
    params=itertools.product((SHAPE, MIXTURE), FILES),
    ids=lambda param: f"{param[0].name}-{param[1].name}",
)
def random_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_model(*request.param, tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_draft_is_verified_with_the_logits_of_plain_decoding_to_the_bit(
    instructions: str, n_threads: int
) -> None:
    model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    target = LlamaTarget(model, n_ctx=1024, n_threads=n_threads)
    rng = np.random.default_rng(7)
    for n_context in (5, 130, 600):
        tokens = rng.integers(10, 8000, n_context + 17, np.int32)
        target.prefill(tokens[:n_context], lambda: False)
        plain = []
        for i in range(n_context, len(tokens)):
            rows = target.decode(tokens[target.n_cached : i + 1], NO_DRAFT)
            plain.append(rows.row(0).copy())
            target.keep([])
        for n_drafted in (1, 2, 4, 8, 16):
            target.prefill(tokens[: n_context + 1], lambda: False)
            draft = Draft.chain(tokens[n_context + 1 :][:n_drafted])
            rows = target.decode(tokens[target.n_cached : n_context + 1], draft)
            found = np.stack([rows.row(i) for i in range(n_drafted + 1)])
            target.keep([])
            assert (found == plain[: n_drafted + 1]).all()
    target.close()
    model.close()


def test_a_model_says_the_same_to_the_bit_in_passes_of_any_size(
    instructions: str, random_file: Path
) -> None:
    model = load_model(random_file, n_gpu_layers=0)
    target = LlamaTarget(model, n_ctx=512, n_threads=2)
    assert target.is_exact
    tokens = np.random.default_rng(4).integers(10, 8000, 60, np.int32)
    target.prefill(tokens[:40], lambda: False)

    def decoded(n_drafted: int) -> Any:
        """(n_drafted + 1, vocabulary) of a pass over tokens 40 to 40 + n_drafted."""
        draft = Draft.chain(tokens[41 : 41 + n_drafted]) if n_drafted else NO_DRAFT
        rows = target.decode(tokens[40:41], draft)
        found = np.stack([rows.row(i) for i in range(n_drafted + 1)])
        target.keep([])
        target.prefill(tokens[:40], lambda: False)
        return found

    before = kernels.n_products()
    of_one = decoded(0)
    n_products = kernels.n_products() - before
    assert n_products >= 7 * SHAPE.n_layers  # nothing was copied into another order
    try:
        ours = decoded(16)
        assert (ours[:1] == of_one).all()
        for n_drafted in range(1, 16):
            assert (decoded(n_drafted) == ours[: n_drafted + 1]).all()
        kernels.use(False)
        target.prefill(tokens[:1], lambda: False)  # forget what was read with ours
        target.prefill(tokens[:40], lambda: False)
        theirs = decoded(16)
        assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.999
    finally:
        target.close()
        model.close()


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


def test_a_small_model_is_kept_in_order_until_it_is_closed(
    instructions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = np.random.default_rng(6).integers(10, 8000, 90, np.int32)

    before = kernels.n_ordered()

    def said() -> Any:
        model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
        target = LlamaTarget(model, n_ctx=256, n_threads=2)
        found = [logits(target, tokens, n_drafted) for n_drafted in (0, 1, 5, 16, 30)]
        n = kernels.n_ordered() - before
        target.close()
        model.close()
        return n, np.concatenate(found)

    n_ordered, ours = said()
    assert n_ordered > 7
    assert kernels.n_ordered() == before
    monkeypatch.setattr(kernels, "MAX_COPIED", bundled(BUNDLED_TARGET).stat().st_size - 1)
    n_ordered, as_in_the_file = said()
    assert not n_ordered
    assert (ours == as_in_the_file).all()


def test_their_share_in_a_file(random_file: Path, tmp_path: Path) -> None:
    needs_order = "F16" not in random_file.name
    assert kernels.share_in(random_file) == kernels.Share(needs_order, is_all=True)
    share = kernels.share_in(bundled(BUNDLED_TARGET))
    assert share == kernels.Share(needs_order=False, is_all=True)
    assert kernels.share_in(random_file.with_name("no file")) == kernels.NOTHING


def test_rows_that_are_no_whole_blocks_of_k_quants(tmp_path: Path) -> None:
    # llama.cpp takes other types for them: so in Qwen2.5-Coder 0.5B, whose rows are of 896 numbers.
    odd = replace(SHAPE, n_embd=320, n_heads=5, n_kv_heads=5)
    for file_type, other in (
        (gguf.LlamaFileType.MOSTLY_Q4_K_M, TYPES.Q5_0),
        (gguf.LlamaFileType.MOSTLY_Q5_K_M, TYPES.Q5_1),
    ):
        file = random_model(odd, file_type, tmp_path)
        kinds = {tensor.tensor_type for tensor in gguf.GGUFReader(file).tensors}
        assert {other, TYPES.Q8_0} <= kinds
        assert kernels.share_in(file) == kernels.Share(needs_order=True, is_all=True)


def test_all_files_of_a_model_that_is_split_count(tmp_path: Path) -> None:
    def write(i: int, **kinds: Any) -> Path:
        path = tmp_path / f"model-{i:05}-of-00003.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        for name, kind in kinds.items():
            stored = gguf.quant_shape_to_byte_shape((16, 256), kind)
            writer.add_tensor(name, np.zeros(stored, np.uint8), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    first = write(1)  # often without tensors
    write(2, a=TYPES.Q8_0, b=TYPES.Q4_K)
    assert kernels.share_in(first) == kernels.Share(needs_order=True, is_all=True)
    write(3, c=TYPES.Q3_K)
    assert kernels.share_in(first) == kernels.Share(True, False, others=("q3_K",))


@pytest.mark.parametrize("has_amx", [False, True])
def test_llama_cpp_never_multiplies_with_amx(
    has_amx: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, asked = lib.llama_model_load_from_file, list[bool]()

    def noted(path: bytes, params: Any) -> Any:
        asked.append(params.use_extra_bufts)
        return load(path, params)

    monkeypatch.setattr(kernels, "has_amx", lambda: has_amx)
    monkeypatch.setattr(lib, "llama_model_load_from_file", noted)
    with kernels.left_out():
        model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    model.close()
    assert asked == [not has_amx]


def test_a_library_that_does_not_say_has_no_amx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_theirs", object)
    assert not kernels.has_amx()


def report(script: str, **environment: str) -> str:
    script += "\nfrom codespec.backends.llama import kernels\nprint(kernels.NAME, kernels.WHY_NOT)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_they_can_be_switched_off() -> None:
    assert report("") == kernels.NAME
    assert report("", CODESPEC_KERNELS="off") == "switched off by CODESPEC_KERNELS"
    assert report("", CODESPEC_KERNELS="avx9") == "this processor has no avx9"


def test_other_instructions_can_be_chosen() -> None:
    for name in kernels.NAMES:
        assert report("", CODESPEC_KERNELS=name) == name


def test_they_stay_out_where_llama_cpp_was_there_first() -> None:
    assert report("import llama_cpp") == "llama_cpp was imported before codespec"
