"""Calls of a target in verification, and the rows of its logits that are read."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from codespec.backends.fake import FakeRows, FakeTarget
from codespec.types import Draft, SamplingParams
from codespec.verify.accept import accept, wellformed
from codespec.verify.sampling import Sampler
from tests.drafters import tree

Q = np.full((2, 5), 0.2, np.float32)


def with_arrays(tokens: npt.NDArray[Any], n: int) -> Draft:
    """The other arrays are of this length."""
    return Draft(tokens, np.zeros(n, np.int32), np.zeros(n, np.float32), np.zeros(n, np.int8))


def with_source(source: int, dtype: npt.DTypeLike) -> Draft:
    return msgspec.structs.replace(Draft.chain([1]), sources=np.array([source], dtype))


def with_prob(prob: object, dtype: npt.DTypeLike = np.float32) -> Draft:
    return Draft.chain([1], probs=np.array([prob], dtype))


@pytest.mark.parametrize(
    "draft",
    [
        Draft.chain([]),
        Draft.chain([0, 4]),
        tree([1, 2, 1], [-1, -1, 0]),
        Draft.chain([1, 2], q=Q),
    ],
)
def test_wellformed(draft):
    assert wellformed(draft, 5, 3)


@pytest.mark.parametrize(
    "draft",
    [
        Draft.chain([0, 5]),
        Draft.chain([-1]),
        Draft.chain([1] * 4),
        tree([1, 2], [0, -1]),
        tree([1, 2], [-1, 1]),
        tree([1, 2], [-2, 0]),
        tree([1, 1], [-1, -1]),
        with_arrays(np.array([1]), 1),
        with_arrays(np.array([1], np.int32), 0),
        with_source(99, np.int8),
        with_source(-1, np.int8),
        with_source(0, np.float32),
        with_prob(np.nan),
        with_prob(1.5),
        with_prob(-0.5),
        with_prob("1", "U1"),
        msgspec.structs.replace(Draft.chain([1, 2]), tokens=np.arange(4, dtype=np.int32)[::2]),
        Draft.chain([1, 2], q=Q[:1]),
        Draft.chain([1, 2], q=Q * 2),
        Draft.chain([1, 2], q=np.full((2, 5), np.nan, np.float32)),
        Draft.chain([1, 2], q=Q - np.array([0.5, -0.5, 0, 0, 0], np.float32)),
        Draft(
            np.array([1, 2], np.int32),
            np.array([-1, -1], np.int32),
            np.ones(2, np.float32),
            np.zeros(2, np.int8),
            Q,
        ),
    ],
)
def test_malformed(draft):
    assert not wellformed(draft, 5, 3)


def ascending(context):
    """The next token is the last one plus one."""
    logits = np.zeros(10, np.float32)
    logits[(context[-1] + 1) % 10] = 5
    return logits


def rows_for(draft):
    target = FakeTarget(ascending, 10, order=1)
    target.prefill(np.array([0, 0], np.int32), lambda: False)
    return target.decode(np.array([0], np.int32), draft)


def test_rows_past_the_first_mismatch_are_not_read():
    draft = Draft.chain([1, 2, 7, 8, 9])
    rows = rows_for(draft)
    assert isinstance(rows, FakeRows)
    verdict = accept(draft, rows, Sampler(SamplingParams()), [], ())
    assert verdict.emitted == (1, 2, 3)
    assert verdict.path == (0, 1)
    assert rows.n_read == 3


def test_a_full_acceptance_emits_one_more():
    draft = Draft.chain([1, 2])
    verdict = accept(draft, rows_for(draft), Sampler(SamplingParams()), [], ())
    assert verdict.emitted == (1, 2, 3)


def test_nothing_follows_the_end():
    draft = Draft.chain([1, 2, 3])
    verdict = accept(draft, rows_for(draft), Sampler(SamplingParams()), [], {2})
    assert verdict.emitted == (1, 2)
    assert verdict.path == (0,)
