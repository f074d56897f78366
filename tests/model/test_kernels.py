"""Models with our own products of matrices: the same to the bit for any number of tokens, in use,
and left out where they should be."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from bench.gpu.shapes import DecoderShape, write_random
from codespec.backends.llama import LlamaTarget, kernels, load_model
from codespec.backends.llama.loader import lib
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.types import NO_DRAFT, Draft

pytestmark = pytest.mark.skipif(not kernels.NAME, reason=f"no kernels: {kernels.WHY_NOT}")

TYPES = gguf.GGMLQuantizationType


@pytest.fixture(scope="module")
def target() -> Any:
    model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    target = LlamaTarget(model, n_ctx=512, n_threads=1)
    yield target
    target.close()
    model.close()


def threads_for(instructions: str) -> int:
    """Two with the best instructions, one with others: which rows a thread takes is the same code,
    and a thread that waits for another one spins."""
    return 2 if instructions == kernels.NAME else 1


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


SHAPE = DecoderShape("small", 2, 256, 4, 2, 512, 8192, tied=True)
MIXTURE = replace(SHAPE, name="mixture", n_experts=8, n_used=3)


FILES = {
    gguf.LlamaFileType.MOSTLY_Q2_K: {TYPES.Q2_K, TYPES.Q3_K, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_Q3_K_M: {TYPES.Q3_K, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_Q4_K_M: {TYPES.Q4_K, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_Q5_K_M: {TYPES.Q5_K, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_F16: {TYPES.F16},
    gguf.LlamaFileType.MOSTLY_BF16: {TYPES.BF16},
    gguf.LlamaFileType.MOSTLY_Q4_0: {TYPES.Q4_0, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_Q5_1: {TYPES.Q5_1, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_Q5_0: {TYPES.Q5_0, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_IQ4_NL: {TYPES.IQ4_NL, TYPES.Q6_K},
    gguf.LlamaFileType.MOSTLY_IQ4_XS: {TYPES.IQ4_XS, TYPES.Q6_K},
}
"""Types of files that people download -> types of their matrices."""
FILES_OF_EXPERTS = {gguf.LlamaFileType.MOSTLY_MXFP4_MOE: {TYPES.MXFP4, TYPES.Q8_0}}
# Attention of a mixture is as that of other models: of these, one of each kind of blocks.
FILES_WITHOUT_EXPERTS = (
    gguf.LlamaFileType.MOSTLY_Q4_K_M,
    gguf.LlamaFileType.MOSTLY_Q5_0,
    gguf.LlamaFileType.MOSTLY_BF16,
)


@pytest.fixture(scope="module")
def plain_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models of each shape that no file type has changed, by the shape's name."""
    folder = tmp_path_factory.mktemp("plain")
    found = {shape.name: folder / f"{shape.name}.gguf" for shape in (SHAPE, MIXTURE)}
    for shape in (SHAPE, MIXTURE):
        write_random(found[shape.name], shape, "f16", bundled(BUNDLED_TARGET))
    return found


def quantised(plain: Path, file_type: gguf.LlamaFileType, folder: Path) -> Path:
    out = folder / f"{file_type.name}.gguf"
    settings = lib.llama_model_quantize_default_params()
    settings.ftype = int(file_type)
    assert lib.llama_model_quantize(bytes(plain), bytes(out), ctypes.byref(settings)) == 0
    kinds = {tensor.tensor_type for tensor in gguf.GGUFReader(out).tensors}
    assert (FILES | FILES_OF_EXPERTS)[file_type] <= kinds
    return out


@pytest.fixture(
    scope="module",
    params=[
        *itertools.product((SHAPE,), FILES_WITHOUT_EXPERTS),
        *itertools.product((MIXTURE,), FILES | FILES_OF_EXPERTS),
    ],
    ids=lambda param: f"{param[0].name}-{param[1].name}",
)
def random_file(
    request: pytest.FixtureRequest,
    plain_files: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    shape, file_type = request.param
    return quantised(plain_files[shape.name], file_type, tmp_path_factory.mktemp("models"))


def test_a_draft_is_verified_with_the_logits_of_plain_decoding_to_the_bit(
    instructions: str,
) -> None:
    model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    target = LlamaTarget(model, n_ctx=1024, n_threads=threads_for(instructions))
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
    target = LlamaTarget(model, n_ctx=512, n_threads=threads_for(instructions))
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


def test_a_small_model_is_kept_in_order_until_it_is_closed(
    instructions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = np.random.default_rng(6).integers(10, 8000, 90, np.int32)

    before = kernels.n_ordered()

    def said() -> Any:
        model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
        target = LlamaTarget(model, n_ctx=256, n_threads=threads_for(instructions))
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
    plain = tmp_path / "plain.gguf"
    odd = replace(SHAPE, n_embd=320, n_heads=5, n_kv_heads=5)
    write_random(plain, odd, "f16", bundled(BUNDLED_TARGET))
    for file_type, other in (
        (gguf.LlamaFileType.MOSTLY_Q4_K_M, TYPES.Q5_0),
        (gguf.LlamaFileType.MOSTLY_Q5_K_M, TYPES.Q5_1),
    ):
        file = quantised(plain, file_type, tmp_path)
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
    write(3, c=TYPES.IQ3_S)
    assert kernels.share_in(first) == kernels.Share(True, False, others=("iq3_s",))


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
    with kernels.switched_off():
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
