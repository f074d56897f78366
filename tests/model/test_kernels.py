"""Our products of matrices inside llama.cpp: right, the same to the bit for any number of columns,
in use, and left out where they should be."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from codespec.backends.llama import LlamaTarget, kernels, load_model
from codespec.models.registry import BUNDLED_TARGET, bundled
from codespec.native import KERNELS
from codespec.types import NO_DRAFT, Draft

pytestmark = pytest.mark.skipif(not kernels.NAME, reason=f"no kernels: {kernels.WHY_NOT}")

Q8_0 = np.dtype([("scale", np.float16), ("numbers", np.int8, 32)])


@pytest.fixture(params=kernels.NAMES)
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    kernels.use(True, request.param)
    yield request.param
    kernels.use(True)


def blocks(rng: np.random.Generator, n: int, n_blocks: int) -> Any:
    out = np.zeros((n, n_blocks), Q8_0)
    out["scale"] = rng.uniform(-0.02, 0.02, out.shape)
    out["numbers"] = rng.integers(-128, 128, out["numbers"].shape)
    return out


def plain(blocks: Any) -> Any:
    numbers = blocks["numbers"].astype(np.float64) * blocks["scale"][..., None].astype(np.float64)
    return numbers.reshape(len(blocks), -1)


def product(weights: Any, states: Any, n_threads: int = 1) -> Any:
    """(columns, rows) float32, by all threads in turn."""
    library = ctypes.CDLL(str(KERNELS))
    library.llamafile_sgemm.restype = ctypes.c_bool
    out = np.full((len(states), len(weights)), np.nan, np.float32)
    for thread in range(n_threads):
        done = library.llamafile_sgemm(
            (ctypes.c_int * 2)(thread, n_threads),
            *map(ctypes.c_int64, (len(weights), len(states), weights.shape[1])),
            *(ctypes.c_void_p(weights.ctypes.data), ctypes.c_int64(weights.shape[1])),
            *(ctypes.c_void_p(states.ctypes.data), ctypes.c_int64(states.shape[1])),
            *(ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(out.shape[1])),
            *(8, 8, 0),
        )
        assert done
    return out


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("n_rows", [16, 17, 31, 64, 100])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 7, 8, 16, 17, 33, 128, 129, 150])
def test_products_are_right(n_rows: int, n_columns: int) -> None:
    rng = np.random.default_rng(n_rows * 1000 + n_columns)
    weights, states = blocks(rng, n_rows, 10), blocks(rng, n_columns, 10)
    expected = plain(states) @ plain(weights).T
    size = np.abs(plain(states)) @ np.abs(plain(weights)).T
    for n_threads in (1, 2, 3):
        assert (np.abs(product(weights, states, n_threads) - expected) <= 2e-6 * size).all()


@pytest.mark.usefixtures("instructions")
def test_a_column_is_the_same_to_the_bit_in_any_company() -> None:
    rng = np.random.default_rng(5)
    weights, states = blocks(rng, 90, 28), blocks(rng, 200, 28)
    alone = np.concatenate([product(weights, states[i : i + 1]) for i in range(len(states))])
    for n_columns in (2, 5, 16, 17, 31, 64, 128, 200):
        assert (product(weights, states[:n_columns], 2) == alone[:n_columns]).all()


@pytest.mark.usefixtures("instructions")
def test_the_ends_of_the_range_do_not_overflow() -> None:
    for weight, state in ((-128, -128), (-128, 127), (127, -128), (127, 127)):
        weights, states = np.zeros((16, 2), Q8_0), np.zeros((3, 2), Q8_0)
        weights["numbers"], states["numbers"] = weight, state
        weights["scale"] = states["scale"] = 1
        assert (product(weights, states) == 64 * weight * state).all()


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
