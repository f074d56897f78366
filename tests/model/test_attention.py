"""Our own attention inside llama.cpp: right, the same to the bit in any company, in use, and left
to llama.cpp where it is of another kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codespec.backends.llama import LlamaTarget, kernels, load_model
from codespec.backends.llama.kernels_check import TYPE_F16, TYPE_F32, Graph
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.types import NO_DRAFT

pytestmark = pytest.mark.skipif(
    not kernels.computes_attention(), reason=f"no kernels: {kernels.WHY_NOT}"
)

HEADS = {"alone": (3, 3), "in pairs": (4, 2), "in sevens": (14, 2)}


@pytest.fixture(params=HEADS.values(), ids=list(HEADS))
def heads(instructions: str, request: pytest.FixtureRequest) -> tuple[int, int]:
    """(query heads, key heads), with each instruction set."""
    return request.param


class Case:
    """Random queries (heads, queries, length), keys and values (key heads, keys, length), and a
    mask that shows each query about half of the keys."""

    def __init__(
        self, heads: tuple[int, int], length: int, n_queries: int, n_keys: int, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.queries = rng.normal(size=(heads[0], n_queries, length)).astype(np.float32)
        self.keys = rng.normal(size=(heads[1], n_keys, length)).astype(np.float16)
        self.values = rng.normal(size=(heads[1], n_keys, length)).astype(np.float16)
        is_open = rng.random((n_queries, n_keys)) < 0.5
        is_open[:, 0] = True
        self.mask = np.where(is_open, 0, -np.inf).astype(np.float16)

    def only(self, queries: slice) -> Case:
        out = Case.__new__(Case)
        out.queries, out.mask = self.queries[:, queries], self.mask[queries]
        out.keys, out.values = self.keys, self.values
        return out

    def attend(self, n_threads: int = 1, bias: float = 0.0, cap: float = 0.0) -> Any:
        """(queries, heads, length), as llama.cpp's graph has it made."""
        llama_cpp: Any = kernels.llama_cpp.llama_cpp
        theirs = llama_cpp._lib
        n_bytes = 4 * (self.queries.nbytes + self.keys.nbytes + self.mask.nbytes) + (1 << 22)
        with Graph(theirs, n_bytes) as graph:
            tensors = []
            for array in (self.queries, self.keys, self.values, self.mask):
                kind = TYPE_F32 if array.dtype == np.float32 else TYPE_F16
                tensor = graph.tensor(kind, *reversed(array.shape))
                graph.array(tensor, array.dtype.type, *array.shape)[:] = array
                tensors.append(tensor)
            out = graph.attention(*tensors, scale=0.2, bias=bias, cap=cap)
            graph.compute(out, n_threads)
            n_heads, n_queries, length = self.queries.shape
            return graph.array(out, np.float32, n_queries, n_heads, length).copy()

    def expected(self, cap: float = 0.0) -> Any:
        shared = len(self.queries) // len(self.keys)
        keys, values = (a.astype(np.float64).repeat(shared, 0) for a in (self.keys, self.values))
        scores = 0.2 * self.queries @ keys.swapaxes(1, 2)
        scores = (cap * np.tanh(scores / cap) if cap else scores) + self.mask
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (weights / weights.sum(axis=-1, keepdims=True) @ values).swapaxes(0, 1)


def n_made(case: Case, **options: Any) -> tuple[Any, int]:
    before = kernels.n_attentions()
    found = case.attend(**options)
    return found, kernels.n_attentions() - before


@pytest.mark.parametrize("length", [16, 32, 48, 64, 80, 112, 128, 256])
def test_it_is_right(heads: tuple[int, int], length: int) -> None:
    for n_queries, n_keys in ((1, 16), (2, 112), (9, 256), (41, 80)):
        case = Case(heads, length, n_queries, n_keys, seed=n_queries)
        for n_threads in (1, 2, 5):
            found, n = n_made(case, n_threads=n_threads)
            assert n == 1
            assert np.abs(found - case.expected()).max() < 2e-6 * np.sqrt(length)


def test_a_query_gets_the_same_to_the_bit_in_any_company(heads: tuple[int, int]) -> None:
    case = Case(heads, 64, 70, 320)
    alone = np.concatenate([case.only(slice(i, i + 1)).attend() for i in range(70)])
    for n_queries, n_threads in ((2, 1), (3, 2), (16, 3), (17, 1), (33, 2), (70, 1), (70, 4)):
        assert (case.only(slice(n_queries)).attend(n_threads) == alone[:n_queries]).all()


def test_what_a_query_may_not_see_does_not_count(heads: tuple[int, int]) -> None:
    case = Case(heads, 64, 5, 256)
    case.mask[:, 130:] = -np.inf
    before = case.attend()
    case.keys[:, 130:], case.values[:, 130:] = 60_000, -60_000
    assert (case.attend() == before).all()


def test_scores_far_apart_neither_overflow_nor_end_in_no_number(heads: tuple[int, int]) -> None:
    case = Case(heads, 64, 3, 128)
    case.keys[:, ::2] *= 300
    assert np.abs(case.attend() - case.expected()).max() < 1e-4


def test_a_query_that_may_see_nothing_gets_zeros(heads: tuple[int, int]) -> None:
    case = Case(heads, 64, 3, 128)
    case.mask[1] = -np.inf
    assert (case.attend()[1] == 0).all()


def test_capped_scores_are_left_to_llama_cpp(heads: tuple[int, int]) -> None:
    case = Case(heads, 64, 3, 128)
    found, n = n_made(case, cap=2.0)
    assert n == 0
    assert np.abs(found - case.expected(cap=2.0)).max() < 1e-2


@pytest.mark.parametrize("name", [BUNDLED_TARGET, BUNDLED_DRAFT])
def test_models_have_theirs_made(instructions: str, name: str) -> None:
    model = load_model(bundled(name), n_gpu_layers=0)
    target = LlamaTarget(model, n_ctx=512, n_threads=2)
    assert model.handle is not None
    n_layers = int(kernels.llama_cpp.llama_model_n_layer(model.handle))
    before = kernels.n_attentions()
    target.decode(np.arange(20, 30, dtype=np.int32), NO_DRAFT)
    assert kernels.n_attentions() == before + n_layers
    target.close()
    model.close()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention.key_length", "40"),
        ("attention.key_length", "[64, 128]"),
        ("attention.value_length", "32"),
        ("attention.max_alibi_bias", "8.0"),
        ("attn_logit_softcapping", "30.0"),
    ],
)
def test_models_of_other_kinds_are_told_by_their_metadata(
    key: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    assert model.has_plain_attention()
    said = {f"llama.{key}": value}
    monkeypatch.setattr(model, "metadata", lambda key, own=model.metadata: said.get(key, own(key)))
    assert not model.has_plain_attention()
    model.close()


@pytest.mark.parametrize("family", ["baichuan", "bloom", "refact"])
def test_families_whose_files_say_nothing_of_their_bias_are_known(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    monkeypatch.setattr(
        model, "metadata", lambda key: family if key == "general.architecture" else ""
    )
    assert not model.has_plain_attention()
    model.close()


def test_without_them_contexts_are_made_for_llama_cpps_own() -> None:
    assert kernels.computes_attention()
    assert kernels.in_use() == [kernels.NAME, "attention"]
    kernels.use(False)
    try:
        assert not kernels.computes_attention()
        assert kernels.in_use() == []
        model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
        target = LlamaTarget(model, n_ctx=512, n_threads=2)
        kernels.use(True)
        before = kernels.n_attentions(), kernels.n_products()
        target.decode(np.arange(20, 30, dtype=np.int32), NO_DRAFT)
        assert kernels.n_attentions() == before[0]  # two products and a softmax instead
        assert kernels.n_products() > before[1]
        target.close()
        model.close()
    finally:
        kernels.use(True)
